"""Links: each source has exactly one target in its own scope (clauses 10.5.4 and 10.5.5)."""

from __future__ import annotations

from collections.abc import Iterator

from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import containers, is_link, nodes_of
from trioflow.model.events import Event, IntermediateCatchEvent, IntermediateThrowEvent, LinkEventDefinition
from trioflow.model.findings import Level
from trioflow.model.graph import Graph

__all__ = ["RULES"]


def link_unnamed(graph: Graph) -> Iterator[Problem]:
    """A link has a name: it is found by it (10.5.5)."""
    for event, definition in _links(graph, Event):
        if not definition.name:
            yield Problem(event, "Its link has no name.", "Give source and target the same link name.")


def link_without_target(graph: Graph) -> Iterator[Problem]:
    """A throwing link has a catching link of its name in its scope (10.5.4, 10.5.5)."""
    for container in containers(graph):
        targets = graph.link_targets(container.id)
        for name, sources in graph.link_sources(container.id).items():
            for source in sources if name not in targets else ():
                yield Problem(
                    source,
                    f"No catching link event in {container.id!r} has the name {name!r}.",
                    "Add the target in the same scope, or correct the name.",
                )


def link_target_ambiguous(graph: Graph) -> Iterator[Problem]:
    """A link name has one catching event in a scope (10.5.4, 10.5.5)."""
    for container in containers(graph):
        for name, targets in graph.link_targets(container.id).items():
            for target in targets[1:]:
                yield Problem(
                    target, f"{targets[0].id!r} catches the link {name!r} too.", "Give each target a name of its own."
                )


def link_without_source(graph: Graph) -> Iterator[Problem]:
    """A catching link is jumped to from somewhere (10.5.4, 10.5.5)."""
    for container in containers(graph):
        sources = graph.link_sources(container.id)
        for name, targets in graph.link_targets(container.id).items():
            for target in targets if name not in sources else ():
                yield Problem(
                    target,
                    f"No throwing link event in {container.id!r} has the name {name!r}: it is never reached.",
                    "Add a source in the same scope, or remove it.",
                )


def link_with_flow(graph: Graph) -> Iterator[Problem]:
    """No flow leads to a link's target, none leaves its source (10.5.4)."""
    for event, _ in _links(graph, IntermediateCatchEvent):
        for flow in graph.incoming.get(event.id, ()):
            yield Problem(event, f"It is a link's target and has the incoming flow {flow.id!r}.", "Remove the flow.")
    for event, _ in _links(graph, IntermediateThrowEvent):
        for flow in graph.outgoing.get(event.id, ()):
            yield Problem(event, f"It is a link's source and has the outgoing flow {flow.id!r}.", "Remove the flow.")


def link_mixed(graph: Graph) -> Iterator[Problem]:
    """A link is the only definition of its event."""
    for event in nodes_of(graph, Event):
        if is_link(graph, event) and len(graph.event_definitions(event)) > 1:
            yield Problem(event, "It is a link and something else too.", "Split it into two events.")


def link_reference_wrong(graph: Graph) -> Iterator[Problem]:
    """Where a link names its partners by id, they are links of its scope and name (10.5.5)."""
    by_id = {definition.id: (event, definition) for event, definition in _links(graph, Event) if definition.id}
    for event, definition in _links(graph, Event):
        for ref in (*definition.sources, *((definition.target,) if definition.target else ())):
            partner = by_id.get(ref)
            same_scope = partner is not None and graph.parent[partner[0].id] == graph.parent[event.id]
            if partner is None or not same_scope or partner[1].name != definition.name:
                yield Problem(
                    event,
                    f"Its link {definition.name!r} names the partner {ref!r}, no link of that name in its scope.",
                    "Correct the reference; a link does not leave its scope.",
                )


def _links(graph: Graph, kind: type[Event]) -> Iterator[tuple[Event, LinkEventDefinition]]:
    for event in nodes_of(graph, kind):
        for definition in graph.event_definitions(event):
            if isinstance(definition, LinkEventDefinition):
                yield event, definition


RULES: Table[Graph] = (
    Rule("link-unnamed", Level.ERROR, "10.5.5", link_unnamed),
    Rule("link-without-target", Level.ERROR, "10.5.4, 10.5.5", link_without_target),
    Rule("link-target-ambiguous", Level.ERROR, "10.5.4, 10.5.5", link_target_ambiguous),
    Rule("link-without-source", Level.VIOLATION, "10.5.4, 10.5.5", link_without_source),
    Rule("link-with-flow", Level.ERROR, "10.5.4", link_with_flow),
    Rule("link-mixed", Level.ERROR, "choice", link_mixed),
    Rule("link-reference-wrong", Level.VIOLATION, "10.5.5", link_reference_wrong),
)
"""Rules about links."""
