"""What the analysis says is what the token game shows."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings

from tests.model.soundness.explorer import Game
from tests.model.soundness.shapes import Draft, any_drafts, nested_drafts
from trioflow.model import Graph
from trioflow.model.soundness import Flaw, Kind, Verdict, analyse


def played(graph: Graph) -> Game:
    """All markings of the process, up to a bound."""
    return Game(graph, graph.process, max_markings=800).play()


def is_shown(flaw: Flaw, game: Game) -> bool:
    """Whether the game comes to what the flaw says."""
    node = flaw.node.id
    match flaw.kind:
        case Kind.DEADLOCK:
            return node in game.stuck()
        case Kind.NEVER_FIRES:
            return node in game.stuck() and node not in game.fired
        case Kind.UNSYNCHRONISED:
            return node in game.crowded
        case Kind.ENDLESS:
            return node in game.fired and game.keeps(node)


def is_walk(graph: Graph, path: tuple[str, ...]) -> bool:
    """Whether each node of a path is a step away from the one before it."""
    steps = {(flow.source_ref, flow.target_ref) for flow in graph.flows.values()}
    steps |= {(host, event.id) for host, events in graph.boundary.items() for event in events}
    return all(step in steps for step in pairwise(path))


def assert_true(graph: Graph, verdict: Verdict, game: Game) -> None:
    """Every flaw comes about, and its paths are paths of the graph that end where the flaw is."""
    for flaw in verdict.flaws:
        assert not game.complete or is_shown(flaw, game), flaw
        assert all(is_walk(graph, path) and path[-1] == flaw.node.id for path in flaw.paths), flaw
        assert flaw.missing is None or graph.flows[flaw.missing].target_ref == flaw.node.id


def assert_nothing_missed(verdict: Verdict, game: Game) -> None:
    """A scope that is decided and has no flaw has no marking that is stuck, and no node with two tokens.

    Save behind an event that does not interrupt: it can fire several times, and each firing is looked at by itself.
    """
    if not verdict.flaws and not verdict.undecided:
        events = [node for node in game.graph.nodes if node.startswith("reminder")]
        assert game.crowded <= set().union(*map(game.behind, events))
        assert not game.complete or not game.stuck()


@settings(max_examples=600)
@given(any_drafts())
def test_drawn_graphs(draft: Draft) -> None:
    """On graphs without any order (bound: 10 nodes, 14 flows) each warning is true and each sound verdict too."""
    graph = draft.graph()
    (verdict,) = analyse(graph)
    game = played(graph)

    assert_true(graph, verdict, game)
    assert_nothing_missed(verdict, game)


@given(nested_drafts())
def test_nested_graphs(draft: Draft) -> None:
    """On nested blocks (bound: two deep) each warning is true and each sound verdict too."""
    graph = draft.graph()
    (verdict,) = analyse(graph)
    game = played(graph)

    assert_true(graph, verdict, game)
    assert_nothing_missed(verdict, game)
