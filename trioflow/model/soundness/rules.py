"""Soundness as rules: what is certain about the tokens of a process, as warnings with a witness.

What "sound" means, what is looked through and what is not: ``docs/explanation/soundness.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from trioflow.model.activities import CallActivity, SubProcess
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import compensation_handlers, has_kind, nodes_of
from trioflow.model.events import CompensateEventDefinition, Event, StartEvent, ThrowEvent
from trioflow.model.findings import Finding, Level
from trioflow.model.flow import FlowNode
from trioflow.model.graph import Graph
from trioflow.model.soundness.analysis import analyse
from trioflow.model.soundness.dead import dead_cycles
from trioflow.model.soundness.judge import Flaw, Kind
from trioflow.model.soundness.outside import scopes_around

__all__ = ["RULES", "findings"]

_LONGEST = 12
"""A path of more nodes than this is shortened in a message."""


def deadlock(graph: Graph) -> Iterator[Problem]:
    """No token waits for ever at a parallel join because another one went elsewhere."""
    yield from _flaws(graph, Kind.DEADLOCK)


def join_never_fires(graph: Graph) -> Iterator[Problem]:
    """A parallel join can get a token on each of its flows."""
    yield from _flaws(graph, Kind.NEVER_FIRES)


def lack_of_synchronisation(graph: Graph) -> Iterator[Problem]:
    """What passes each token on is not reached by several tokens side by side."""
    yield from _flaws(graph, Kind.UNSYNCHRONISED)


def endless_loop(graph: Graph) -> Iterator[Problem]:
    """A loop has a way out, or something around it ends it."""
    yield from _flaws(graph, Kind.ENDLESS)


def dead_nodes(graph: Graph) -> Iterator[Problem]:
    """Nodes are reached from a start, not only from each other."""
    for path in dead_cycles(graph):
        yield Problem(
            graph.nodes[path[0]],
            f"No start leads here; it is reached only from itself: {_shown(path)}.",
            "Lead a flow to it from a start event, or remove it.",
        )


# ------------------------------------------------------------------ flaws as text


def _flaws(graph: Graph, kind: Kind) -> Iterator[Problem]:
    for verdict in analyse(graph):
        yield from (_problem(flaw) for flaw in verdict.flaws if flaw.kind is kind)


def _problem(flaw: Flaw) -> Problem:
    return Problem(flaw.node, _TEXTS[flaw.kind](flaw), _REMEDIES[flaw.kind])


def _deadlock_text(flaw: Flaw) -> str:
    what = f"a token waits here for ever: it comes by {_way(flaw)}, and none comes by {flaw.missing!r}."
    return _when(flaw, what)


def _never_fires_text(flaw: Flaw) -> str:
    return f"It never fires: a token comes by {_way(flaw)}, but none can ever come by {flaw.missing!r}."


def _unsynchronised_text(flaw: Flaw) -> str:
    ways = " and ".join(_shown(path) for path in flaw.paths)
    return _when(flaw, f"two tokens come here side by side, and all that follows runs twice: {ways}.")


def _endless_text(flaw: Flaw) -> str:
    return f"A token that comes here goes round for ever: {_way(flaw)}."


def _when(flaw: Flaw, what: str) -> str:
    """What happens, with the decision that it takes."""
    parts = []
    if flaw.cause is not None:
        parts.append(f"once the way by {flaw.cause!r} is {'' if flaw.taken else 'not '}taken")
    if flaw.quiet:
        parts.append(f"unless {'another' if parts else 'an'} event prevents it")
    text = ", ".join([*parts, what])
    return text[0].upper() + text[1:]


def _way(flaw: Flaw) -> str:
    return _shown(flaw.paths[0])


def _shown(path: tuple[str, ...]) -> str:
    names = [repr(name) for name in path]
    if len(names) > _LONGEST:
        half = _LONGEST // 2
        names[half:-half] = [f"({len(names) - 2 * half} more)"]
    return " -> ".join(names)


_TEXTS: Mapping[Kind, Callable[[Flaw], str]] = MappingProxyType(
    {
        Kind.DEADLOCK: _deadlock_text,
        Kind.NEVER_FIRES: _never_fires_text,
        Kind.UNSYNCHRONISED: _unsynchronised_text,
        Kind.ENDLESS: _endless_text,
    }
)
_REMEDIES: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.DEADLOCK: "Merge alternatives by an exclusive gateway, or lead each branch of the split to the join.",
        Kind.NEVER_FIRES: "Merge a way back, or alternatives, by an exclusive gateway, or remove the flow.",
        Kind.UNSYNCHRONISED: "Join parallel branches by a parallel gateway, optional ones by an inclusive one.",
        Kind.ENDLESS: "Give the loop a way out.",
    }
)


# ------------------------------------------------------------------ compensation


def compensation_uncaught(graph: Graph) -> Iterator[Problem]:
    """What a throw compensates has something that undoes it (10.7.2)."""
    handled = {boundary.attached_to_ref for boundary, _ in compensation_handlers(graph)}
    for event in nodes_of(graph, ThrowEvent):
        for definition in graph.event_definitions(event):
            if isinstance(definition, CompensateEventDefinition) and not _undone(graph, event, definition, handled):
                yield Problem(
                    event,
                    f"It compensates {definition.activity_ref!r}, which nothing undoes."
                    if definition.activity_ref
                    else f"It compensates {_scope_of(graph, event)!r}, where nothing undoes anything.",
                    "Give an activity a compensation boundary event with a handler, or remove the throw.",
                )


def _undone(graph: Graph, event: Event, definition: CompensateEventDefinition, handled: set[str]) -> bool:
    if definition.activity_ref:
        named = graph.nodes.get(definition.activity_ref)
        return named is None or _can_be_undone(graph, named, handled)
    return any(_can_be_undone(graph, node, handled) for node in graph.children.get(_scope_of(graph, event), ()))


def _scope_of(graph: Graph, event: Event) -> str:
    """The scope that a throw compensates: in a handler the one around it."""
    scopes = scopes_around(graph, graph.parent[event.id])
    return next((scope for scope in scopes if not _is_handler(graph.nodes.get(scope))), scopes[-1])


def _is_handler(node: FlowNode | None) -> bool:
    return isinstance(node, SubProcess) and (node.triggered_by_event or node.is_for_compensation)


def _can_be_undone(graph: Graph, node: FlowNode, handled: set[str]) -> bool:
    """Whether the ledger can hold something of the node: what a called process leaves there is not known."""
    found, todo = {node.id}, [node]
    while todo:
        each = todo.pop()
        if each.id in handled or isinstance(each, CallActivity):
            return True
        if isinstance(each, StartEvent) and has_kind(graph, each, CompensateEventDefinition):
            return True
        inside = [child for child in graph.children.get(each.id, ()) if child.id not in found]
        found.update(child.id for child in inside)
        todo.extend(inside)
    return False


_OF_FLAWS: Mapping[Kind, Rule[Graph]] = MappingProxyType(
    {
        Kind.DEADLOCK: Rule(Kind.DEADLOCK.value, Level.WARNING, "13.4.1", deadlock),
        Kind.NEVER_FIRES: Rule(Kind.NEVER_FIRES.value, Level.WARNING, "13.4.1", join_never_fires),
        Kind.UNSYNCHRONISED: Rule(Kind.UNSYNCHRONISED.value, Level.WARNING, "13.4.2", lack_of_synchronisation),
        Kind.ENDLESS: Rule(Kind.ENDLESS.value, Level.WARNING, "choice", endless_loop),
    }
)
_OTHERS: Table[Graph] = (
    Rule("dead-nodes", Level.WARNING, "10.5.2", dead_nodes),
    Rule("compensation-uncaught", Level.WARNING, "10.7.2", compensation_uncaught),
)

RULES: Table[Graph] = (*_OF_FLAWS.values(), *_OTHERS)
"""Rules about what tokens can come to; ``findings`` asks all of them at once."""


def findings(graph: Graph) -> Iterator[Finding]:
    """What all the rules find in a process: one analysis serves those that need it."""
    for flaw in (flaw for verdict in analyse(graph) for flaw in verdict.flaws):
        yield _finding(_OF_FLAWS[flaw.kind], _problem(flaw))
    for rule in _OTHERS:
        yield from rule.findings(graph)


def _finding(rule: Rule[Graph], problem: Problem) -> Finding:
    return Finding.about(
        problem.element, level=rule.level, rule=rule.name, message=problem.message, remedy=problem.remedy
    )
