"""Real files: every warning about one is something that the token game comes to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.model.soundness.explorer import Game, NotModelled
from tests.model.soundness.test_oracle import is_shown
from trioflow.model import Graph, SubProcess
from trioflow.model.soundness import Flaw, analyse
from trioflow.xml import read


def graphs(folder: Path) -> Iterator[Graph]:
    """Each process of each file, where flows have the ids that the game tells them apart by."""
    for path in sorted(folder.rglob("*.bpmn")):
        definitions = read(path.read_bytes(), name=path.name).definitions
        if definitions is None:
            continue
        for process in definitions.processes:
            graph = Graph.of(definitions, process)
            if all(graph.flows):
                yield graph


def shown(graph: Graph, flaws: tuple[Flaw, ...], scope_id: str) -> Iterator[bool]:
    """Whether the game comes to each flaw; nothing for a scope that is too large to see all of it."""
    scope = graph.nodes.get(scope_id)
    game = Game(graph, scope if isinstance(scope, SubProcess) else graph.process, max_markings=2_000)
    try:
        game.play()
    except NotModelled:
        return
    if game.complete:
        yield from (is_shown(flaw, game) for flaw in flaws)


def test_every_warning_about_a_shared_model_is_true(shared: Path) -> None:
    """The warnings about the shared collection (bound: 2,000 markings a scope) are confirmed one by one."""
    seen: list[bool] = []
    for graph in graphs(shared / "models"):
        for verdict in analyse(graph):
            seen += shown(graph, verdict.flaws, verdict.scope) if verdict.flaws else ()

    assert len(seen) >= 8
    assert all(seen)
