"""Flows and nodes: what connects to what, and what can never run (clauses 7.6.1, 8.4.13, 10.3 to 10.6)."""

from __future__ import annotations

from collections.abc import Iterator

from trioflow.model.activities import Activity
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import (
    containers,
    defaults,
    described,
    ends,
    has_kind,
    in_ad_hoc,
    instantiates,
    is_event_sub_process,
    is_link,
    nodes_of,
    starts,
)
from trioflow.model.events import (
    BoundaryEvent,
    CompensateEventDefinition,
    EndEvent,
    Event,
    IntermediateCatchEvent,
    IntermediateThrowEvent,
    StartEvent,
)
from trioflow.model.findings import Level
from trioflow.model.flow import FlowNode, SequenceFlow
from trioflow.model.graph import Graph, elements_of

__all__ = ["RULES"]


# ------------------------------------------------------------------ flows


def flow_end_missing(graph: Graph) -> Iterator[Problem]:
    """Both ends of a flow are flow nodes of the process; artifacts and data are not."""
    for flow in _flows(graph):
        for end, ref in (("source", flow.source_ref), ("target", flow.target_ref)):
            if ref not in graph.nodes:
                yield Problem(
                    flow,
                    f"The {end} {ref!r} of this sequence flow is no activity, gateway or event of the process.",
                    "Connect two flow nodes of the process, or remove the flow.",
                )


def flow_across_scopes(graph: Graph) -> Iterator[Problem]:
    """A flow does not cross the boundary of a sub-process (7.6.1)."""
    for flow in _flows(graph):
        source, target = graph.parent.get(flow.source_ref), graph.parent.get(flow.target_ref)
        if source is not None and target is not None and source != target:
            yield Problem(
                flow,
                f"It leads from {flow.source_ref!r} in {source!r} to {flow.target_ref!r} in {target!r}.",
                "Connect the sub-process itself, or leave it by a boundary event.",
            )


def flow_in_other_scope(graph: Graph) -> Iterator[Problem]:
    """A flow is written in the scope of the nodes it connects (8.4.8)."""
    for flow, container in elements_of(graph.process):
        if not isinstance(flow, SequenceFlow):
            continue
        source, target = graph.parent.get(flow.source_ref), graph.parent.get(flow.target_ref)
        if source is not None and source == target and source != container:
            yield Problem(
                flow, f"It connects nodes of {source!r} but stands in {container!r}.", f"Move the flow into {source!r}."
            )


def flow_unlisted(graph: Graph) -> Iterator[Problem]:
    """Nodes list their flows (8.4.13)."""
    # Sets, for a gateway with thousands of flows lists them all.
    outgoing = {node.id: frozenset(node.outgoing) for node in graph.nodes.values()}
    incoming = {node.id: frozenset(node.incoming) for node in graph.nodes.values()}
    for flow in _flows(graph):
        if flow.id not in outgoing.get(flow.source_ref, (flow.id,)):
            yield Problem(
                flow, f"Its source {flow.source_ref!r} does not list it as outgoing.", "Add the outgoing element."
            )
        if flow.id not in incoming.get(flow.target_ref, (flow.id,)):
            yield Problem(
                flow, f"Its target {flow.target_ref!r} does not list it as incoming.", "Add the incoming element."
            )


def listed_flow_unknown(graph: Graph) -> Iterator[Problem]:
    """What nodes list as their flows are flows of theirs (8.4.13)."""
    for node in graph.nodes.values():
        for side, listed, flows in (
            ("incoming", node.incoming, graph.incoming.get(node.id, ())),
            ("outgoing", node.outgoing, graph.outgoing.get(node.id, ())),
        ):
            for flow_id in sorted(set(listed) - {flow.id for flow in flows}):
                yield Problem(
                    node, f"It lists {flow_id!r} as {side}, which is no such flow.", f"Remove the {side} element."
                )


def flow_not_immediate(graph: Graph) -> Iterator[Problem]:
    """``isImmediate`` is not false in an executable process (8.4.13)."""
    if graph.process.is_executable is False:
        return
    for flow in _flows(graph):
        if flow.is_immediate is False:
            yield Problem(flow, "isImmediate is 'false' in an executable process.", "Remove the attribute.")


def lone_conditional_flow(graph: Graph) -> Iterator[Problem]:
    """An activity with a conditional flow has at least one other outgoing flow (8.4.13)."""
    for activity in nodes_of(graph, Activity):
        outgoing = graph.outgoing.get(activity.id, ())
        if len(outgoing) == 1 and outgoing[0].condition_expression is not None:
            yield Problem(
                outgoing[0],
                f"It is the only flow out of {activity.id!r} and has a condition: if it is false, nothing follows.",
                "Add a default flow, or remove the condition.",
            )


def condition_on_event_flow(graph: Graph) -> Iterator[Problem]:
    """Only activities and choosing gateways have conditional flows out (8.4.13)."""
    for event in nodes_of(graph, Event):
        for flow in graph.outgoing.get(event.id, ()):
            if flow.condition_expression is not None:
                yield Problem(
                    flow,
                    f"It has a condition, but leaves the event {event.id!r}.",
                    "Put an exclusive or inclusive gateway behind the event.",
                )


def default_not_outgoing(graph: Graph) -> Iterator[Problem]:
    """The default flow of a node leaves that node (10.3, 10.6.2)."""
    for node, flow_id in defaults(graph):
        if flow_id not in {flow.id for flow in graph.outgoing.get(node.id, ())}:
            yield Problem(
                node, f"Its default {flow_id!r} is not one of its outgoing flows.", "Name an outgoing flow, or none."
            )


def default_with_condition(graph: Graph) -> Iterator[Problem]:
    """The default flow has no condition (10.3, 10.6.2)."""
    for node, flow_id in defaults(graph):
        flow = graph.flows.get(flow_id)
        if flow is not None and flow.condition_expression is not None:
            yield Problem(flow, f"It is the default flow of {node.id!r} and has a condition.", "Remove one of the two.")


def _flows(graph: Graph) -> Iterator[SequenceFlow]:
    """All flows, those with a repeated or missing id too."""
    return (element for element, _ in elements_of(graph.process) if isinstance(element, SequenceFlow))


# ------------------------------------------------------------------ ids


def id_missing(graph: Graph) -> Iterator[Problem]:
    """Nodes and flows have ids: the state of an instance is kept by them."""
    for element, container in elements_of(graph.process):
        if isinstance(element, (FlowNode, SequenceFlow)) and not element.id:
            yield Problem(element, f"A {element.tag} in {container!r} has no id.", "Give it an id.")


# ------------------------------------------------------------------ boundary events


def boundary_host_missing(graph: Graph) -> Iterator[Problem]:
    """A boundary event is attached to an activity of its own scope (10.5.4)."""
    for event in nodes_of(graph, BoundaryEvent):
        host = graph.nodes.get(event.attached_to_ref)
        remedy = "Attach it to an activity of the scope it is drawn in."
        if host is None:
            yield Problem(event, f"It is attached to {event.attached_to_ref!r}, which does not exist.", remedy)
        elif not isinstance(host, Activity):
            yield Problem(event, f"It is attached to {described(host)}, which is no activity.", remedy)
        elif graph.parent[host.id] != graph.parent[event.id]:
            yield Problem(
                event, f"It stands in {graph.parent[event.id]!r}, its host in {graph.parent[host.id]!r}.", remedy
            )


def boundary_at_handler(graph: Graph) -> Iterator[Problem]:
    """An event sub-process has no boundary events: it has no place in the flow."""
    for event in nodes_of(graph, BoundaryEvent):
        host = graph.nodes.get(event.attached_to_ref)
        if host is not None and is_event_sub_process(host):
            yield Problem(
                event,
                f"It is attached to the event sub-process {host.id!r}.",
                "Put an event sub-process for it inside, or attach it to an activity.",
            )


def boundary_with_incoming(graph: Graph) -> Iterator[Problem]:
    """No flow leads to a boundary event (10.5.4)."""
    return _forbidden(graph, BoundaryEvent, graph.incoming, "A boundary event has no incoming flow.")


def boundary_without_outgoing(graph: Graph) -> Iterator[Problem]:
    """A boundary event leads somewhere (10.5.4)."""
    for event in nodes_of(graph, BoundaryEvent):
        if not graph.outgoing.get(event.id) and not has_kind(graph, event, CompensateEventDefinition):
            yield Problem(
                event, "It has no outgoing flow: its token ends at once.", "Connect it to what shall happen then."
            )


# ------------------------------------------------------------------ starts and ends


def start_with_incoming(graph: Graph) -> Iterator[Problem]:
    """No flow leads to a start event (10.5.2)."""
    return _forbidden(graph, StartEvent, graph.incoming, "A start event has no incoming flow.")


def end_with_outgoing(graph: Graph) -> Iterator[Problem]:
    """No flow leaves an end event (10.5.3)."""
    return _forbidden(graph, EndEvent, graph.outgoing, "An end event has no outgoing flow.")


def event_sub_process_with_flows(graph: Graph) -> Iterator[Problem]:
    """An event sub-process has no flows (10.3.5)."""
    for node in graph.nodes.values():
        flows = (*graph.incoming.get(node.id, ()), *graph.outgoing.get(node.id, ()))
        if is_event_sub_process(node) and flows:
            yield Problem(
                node,
                f"It has the sequence flow {flows[0].id!r}; an event sub-process is started by its event alone.",
                "Remove the flow, or make it a plain sub-process.",
            )


def _forbidden(
    graph: Graph, kind: type[FlowNode], flows: dict[str, tuple[SequenceFlow, ...]], message: str
) -> Iterator[Problem]:
    for node in nodes_of(graph, kind):
        for flow in flows.get(node.id, ()):
            yield Problem(node, f"{message} It has {flow.id!r}.", "Remove the flow, or use an intermediate event.")


def start_without_outgoing(graph: Graph) -> Iterator[Problem]:
    """A start event leads somewhere, and says so by an ``outgoing`` element (10.5.2)."""
    for event in nodes_of(graph, StartEvent):
        if not graph.outgoing.get(event.id):
            yield Problem(event, "It has no outgoing flow: nothing runs.", "Connect it to the first node.")
        elif not event.outgoing:
            yield Problem(event, "It has no outgoing element, though a flow leaves it.", "List its flows.")


def end_without_incoming(graph: Graph) -> Iterator[Problem]:
    """An end event is reached by a flow, and says so by an ``incoming`` element (10.5.3)."""
    for event in nodes_of(graph, EndEvent):
        if not graph.incoming.get(event.id):
            yield Problem(event, "It has no incoming flow: no token reaches it.", "Connect it, or remove it.")
        elif not event.incoming:
            yield Problem(event, "It has no incoming element, though a flow leads to it.", "List its flows.")


def end_without_start(graph: Graph) -> Iterator[Problem]:
    """A scope with an end event has a start event (10.5.3)."""
    for container in containers(graph):
        found = ends(graph, container.id)
        if found and not starts(graph, container.id):
            yield Problem(found[0], f"{container.id!r} has an end event, but no start event.", "Add a start event.")


def start_without_end(graph: Graph) -> Iterator[Problem]:
    """A scope with a start event has an end event (10.5.3)."""
    for container in containers(graph):
        found = [node for node in starts(graph, container.id) if isinstance(node, StartEvent)]
        if found and not ends(graph, container.id):
            yield Problem(found[0], f"{container.id!r} has a start event, but no end event.", "Add an end event.")


# ------------------------------------------------------------------ nodes on their own


def node_unreachable(graph: Graph) -> Iterator[Problem]:
    """Beside a start event, a node without incoming flow never runs (10.5.2)."""
    for node in nodes_of(graph, FlowNode):
        if isinstance(node, Event) or graph.incoming.get(node.id) or not _in_flow(graph, node):
            continue
        if not instantiates(node) and starts(graph, graph.parent[node.id]):
            yield Problem(
                node,
                "It has no incoming flow, and its scope begins at a start event: it would never run.",
                "Connect it, or remove it.",
            )


def node_without_outgoing(graph: Graph) -> Iterator[Problem]:
    """Where a scope has end events, each path leads to one (10.5.3)."""
    for node in nodes_of(graph, FlowNode):
        if isinstance(node, Event) or graph.outgoing.get(node.id) or not _in_flow(graph, node):
            continue
        if ends(graph, graph.parent[node.id]):
            yield Problem(
                node, "It has no outgoing flow, though its scope has end events.", "Connect it to an end event."
            )


def _in_flow(graph: Graph, node: FlowNode) -> bool:
    """Whether the node belongs to the sequence flow: no handler, nothing chosen at run time."""
    for_compensation = isinstance(node, Activity) and node.is_for_compensation
    return not (for_compensation or is_event_sub_process(node) or in_ad_hoc(graph, node))


def intermediate_without_incoming(graph: Graph) -> Iterator[Problem]:
    """An intermediate event is reached by a flow; a link's target by its link (10.5.4)."""
    for event in _intermediate(graph):
        catches_link = isinstance(event, IntermediateCatchEvent) and is_link(graph, event)
        if not graph.incoming.get(event.id) and not catches_link and not in_ad_hoc(graph, event):
            yield Problem(event, "It has no incoming flow.", "Connect it, or remove it.")


def intermediate_without_outgoing(graph: Graph) -> Iterator[Problem]:
    """An intermediate event leads somewhere; a link's source by its link (10.5.4)."""
    for event in _intermediate(graph):
        throws_link = isinstance(event, IntermediateThrowEvent) and is_link(graph, event)
        if not graph.outgoing.get(event.id) and not throws_link and not in_ad_hoc(graph, event):
            yield Problem(event, "It has no outgoing flow.", "Connect it, or use an end event.")


def _intermediate(graph: Graph) -> Iterator[FlowNode]:
    yield from nodes_of(graph, IntermediateCatchEvent)
    yield from nodes_of(graph, IntermediateThrowEvent)


RULES: Table[Graph] = (
    Rule("id-missing", Level.ERROR, "choice", id_missing),
    Rule("flow-end-missing", Level.ERROR, "8.4.13", flow_end_missing),
    Rule("flow-across-scopes", Level.ERROR, "7.6.1", flow_across_scopes),
    Rule("flow-in-other-scope", Level.VIOLATION, "8.4.8", flow_in_other_scope),
    Rule("flow-unlisted", Level.VIOLATION, "8.4.13", flow_unlisted),
    Rule("listed-flow-unknown", Level.VIOLATION, "8.4.13", listed_flow_unknown),
    Rule("flow-not-immediate", Level.VIOLATION, "8.4.13", flow_not_immediate),
    Rule("lone-conditional-flow", Level.VIOLATION, "8.4.13", lone_conditional_flow),
    Rule("condition-on-event-flow", Level.VIOLATION, "8.4.13", condition_on_event_flow),
    Rule("default-not-outgoing", Level.ERROR, "10.3, 10.6.2", default_not_outgoing),
    Rule("default-with-condition", Level.VIOLATION, "10.3, 10.6.2", default_with_condition),
    Rule("boundary-host-missing", Level.ERROR, "10.5.4", boundary_host_missing),
    Rule("boundary-at-event-sub-process", Level.ERROR, "choice", boundary_at_handler),
    Rule("boundary-with-incoming", Level.ERROR, "10.5.4", boundary_with_incoming),
    Rule("boundary-without-outgoing", Level.VIOLATION, "10.5.4", boundary_without_outgoing),
    Rule("start-with-incoming", Level.ERROR, "10.5.2", start_with_incoming),
    Rule("end-with-outgoing", Level.ERROR, "10.5.3", end_with_outgoing),
    Rule("event-sub-process-with-flows", Level.ERROR, "10.3.5", event_sub_process_with_flows),
    Rule("start-without-outgoing", Level.VIOLATION, "10.5.2", start_without_outgoing),
    Rule("end-without-incoming", Level.VIOLATION, "10.5.3", end_without_incoming),
    Rule("end-without-start", Level.VIOLATION, "10.5.3", end_without_start),
    Rule("start-without-end", Level.VIOLATION, "10.5.3", start_without_end),
    Rule("node-unreachable", Level.VIOLATION, "10.5.2", node_unreachable),
    Rule("node-without-outgoing", Level.VIOLATION, "10.5.3", node_without_outgoing),
    Rule("intermediate-without-incoming", Level.VIOLATION, "10.5.4", intermediate_without_incoming),
    Rule("intermediate-without-outgoing", Level.VIOLATION, "10.5.4", intermediate_without_outgoing),
)
"""Rules about the structure of one process."""
