"""Activities: quantities, loops, calls, receive tasks, ad-hoc sub-processes (clause 10.3)."""

from __future__ import annotations

from collections.abc import Iterator

from trioflow.model.activities import (
    Activity,
    AdHocSubProcess,
    CallActivity,
    GlobalTask,
    MultiInstanceLoopCharacteristics,
    ReceiveTask,
    ScriptTask,
    StandardLoopCharacteristics,
)
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import each, executable, kinds, nodes_of
from trioflow.model.common import ResourceRole
from trioflow.model.events import EndEvent, StartEvent
from trioflow.model.findings import Level
from trioflow.model.graph import Graph
from trioflow.model.process import Process

__all__ = ["RULES"]


def start_quantity(graph: Graph) -> Iterator[Problem]:
    """An activity starts with at least one token (10.3)."""
    for activity in nodes_of(graph, Activity):
        if activity.start_quantity < 1:
            yield Problem(activity, f"Its startQuantity is {activity.start_quantity}.", "Use 1 or more.")


def completion_quantity(graph: Graph) -> Iterator[Problem]:
    """An activity gives at least one token (10.3)."""
    for activity in nodes_of(graph, Activity):
        if activity.completion_quantity < 1:
            yield Problem(activity, f"Its completionQuantity is {activity.completion_quantity}.", "Use 1 or more.")


# ------------------------------------------------------------------ loops


def loop_unbounded(graph: Graph) -> Iterator[Problem]:
    """A standard loop has a condition or a maximum (``docs/explanation/elements.md``)."""
    for activity, loop in _loops(graph):
        if loop.loop_condition is None and loop.loop_maximum is None:
            yield Problem(activity, "Its loop has neither loopCondition nor loopMaximum.", "Give it one of the two.")


def loop_maximum(graph: Graph) -> Iterator[Problem]:
    """A loop's maximum is at least one (``docs/explanation/elements.md``)."""
    for activity, loop in _loops(graph):
        if loop.loop_maximum is not None and loop.loop_maximum < 1:
            yield Problem(activity, f"Its loopMaximum is {loop.loop_maximum}.", "Use 1 or more, or leave it out.")


def multi_instance_unbounded(graph: Graph) -> Iterator[Problem]:
    """A multi-instance has a cardinality or a collection (10.3.8)."""
    for activity, loop in _multi_instances(graph):
        if loop.loop_cardinality is None and not loop.loop_data_input_ref:
            yield Problem(
                activity, "It has neither loopCardinality nor loopDataInputRef.", "Say how many instances there are."
            )


def multi_instance_both(graph: Graph) -> Iterator[Problem]:
    """A multi-instance has not both a cardinality and a collection (10.3.8)."""
    for activity, loop in _multi_instances(graph):
        if loop.loop_cardinality is not None and loop.loop_data_input_ref:
            yield Problem(activity, "It has both loopCardinality and loopDataInputRef.", "Leave one of the two out.")


def multi_instance_concurrency(graph: Graph) -> Iterator[Problem]:
    """``maxConcurrent`` is a positive number (``docs/explanation/elements.md``)."""
    for activity, loop in _multi_instances(graph):
        text = loop.extensions.own("maxConcurrent")
        if text is not None and not (text.isascii() and text.isdigit() and int(text) > 0):
            yield Problem(activity, f"Its maxConcurrent is {text!r}.", "Use a whole number from 1 up.")


def multi_instance_event_missing(graph: Graph) -> Iterator[Problem]:
    """A multi-instance that throws at one or each completion says what (10.3.8)."""
    for activity, loop in _multi_instances(graph):
        ref = {"None": loop.none_behavior_event_ref, "One": loop.one_behavior_event_ref}.get(loop.behavior, "")
        if ref is None:
            yield Problem(
                activity,
                f"Its behavior is {loop.behavior!r}, but no event definition says what it throws.",
                "Name the event definition, or leave behavior out.",
            )


def _loops(graph: Graph) -> Iterator[tuple[Activity, StandardLoopCharacteristics]]:
    for activity in nodes_of(graph, Activity):
        if isinstance(activity.loop_characteristics, StandardLoopCharacteristics):
            yield activity, activity.loop_characteristics


def _multi_instances(graph: Graph) -> Iterator[tuple[Activity, MultiInstanceLoopCharacteristics]]:
    for activity in nodes_of(graph, Activity):
        if isinstance(activity.loop_characteristics, MultiInstanceLoopCharacteristics):
            yield activity, activity.loop_characteristics


# ------------------------------------------------------------------ tasks


def receive_without_message(graph: Graph) -> Iterator[Problem]:
    """A receive task says which message."""
    for task in nodes_of(graph, ReceiveTask):
        if not task.message_ref and not task.operation_ref:
            yield Problem(
                task, "It waits for a message, but no messageRef says which.", "Add a message and refer to it."
            )


def receive_start_with_incoming(graph: Graph) -> Iterator[Problem]:
    """A receive task that starts instances has no way in (10.3.3)."""
    for task in nodes_of(graph, ReceiveTask):
        incoming = graph.incoming.get(task.id, ())
        if task.instantiate and incoming:
            yield Problem(
                task, f"It instantiates and has the incoming flow {incoming[0].id!r}.", "Remove one of the two."
            )


def script_missing(graph: Graph) -> Iterator[Problem]:
    """A script task has a script (10.3.3)."""
    for task in nodes_of(graph, ScriptTask):
        if not (task.script or "").strip():
            yield Problem(task, "It has no script: it does nothing.", "Write its script, or use a plain task.")


def script_format_missing(graph: Graph) -> Iterator[Problem]:
    """A script says its language; without it the engine's default runs it (10.3.3)."""
    for task in nodes_of(graph, ScriptTask):
        if task.script and not task.script_format:
            yield Problem(task, "It has a script but no scriptFormat.", "Name the script's language.")


def resource_role(graph: Graph) -> Iterator[Problem]:
    """A role names a resource, with parameters, or has an assignment expression (10.3.1)."""
    for role in each(graph, ResourceRole):
        if role.resource_ref and role.assignment_expression is not None:
            yield Problem(role, "It has both resourceRef and resourceAssignmentExpression.", "Keep one of the two.")
        if role.parameter_bindings and not role.resource_ref:
            yield Problem(role, "It binds parameters of a resource, but names none.", "Add the resourceRef.")


# ------------------------------------------------------------------ calls


def call_without_target(graph: Graph) -> Iterator[Problem]:
    """A call activity says what it calls (10.3.6)."""
    for call in nodes_of(graph, CallActivity):
        if not call.called_element:
            yield Problem(call, "It has no calledElement.", "Name the process or global task that it calls.")


def call_target_wrong(graph: Graph) -> Iterator[Problem]:
    """What is called, if it is in the document, is a process or a global task (10.3.6)."""
    for call in nodes_of(graph, CallActivity):
        target = graph.nodes.get(call.called_element or "") or graph.roots.get(call.called_element or "")
        if target is not None and not isinstance(target, (Process, GlobalTask)):
            yield Problem(
                call, f"It calls {call.called_element!r}, a {target.tag}.", "Call a process or a global task."
            )


def call_without_none_start(graph: Graph) -> Iterator[Problem]:
    """A called process of the document can be started without a trigger (10.5.2)."""
    for call in nodes_of(graph, CallActivity):
        target = graph.roots.get(call.called_element or "")
        if not isinstance(target, Process):
            continue
        called = graph if target is graph.process else Graph.of(graph.definitions, target)
        found = [node for node in called.children[target.id] if isinstance(node, StartEvent)]
        if found and not any("none" in kinds(called, start) for start in found):
            yield Problem(
                call,
                f"The process {target.id!r} that it calls has only start events with triggers.",
                "Add a none start event to it.",
            )


# ------------------------------------------------------------------ ad-hoc sub-processes


def ad_hoc_empty(graph: Graph) -> Iterator[Problem]:
    """An ad-hoc sub-process holds an activity (10.3.5)."""
    for node in nodes_of(graph, AdHocSubProcess):
        if not any(isinstance(child, Activity) for child in graph.children.get(node.id, ())):
            yield Problem(node, "It holds no activity.", "Add one.")


def ad_hoc_start_or_end(graph: Graph) -> Iterator[Problem]:
    """An ad-hoc sub-process has no start and end events (10.3.5)."""
    for node in nodes_of(graph, AdHocSubProcess):
        for child in graph.children.get(node.id, ()):
            if isinstance(child, (StartEvent, EndEvent)):
                yield Problem(child, f"It lies in the ad-hoc sub-process {node.id!r}.", "Remove it.")


def public_executable(graph: Graph) -> Iterator[Problem]:
    """A public process is not executable (10.2)."""
    process = graph.process
    if process.process_type == "Public" and process.is_executable:
        yield Problem(process, "It is Public and isExecutable.", "Make it Private, or not executable.")


def not_executable(graph: Graph) -> Iterator[Problem]:
    """A process that says so is not meant to run (10.2)."""
    if not executable(graph):
        yield Problem(graph.process, "Its isExecutable is 'false'.", "Set isExecutable to 'true' to run it.")


RULES: Table[Graph] = (
    Rule("start-quantity", Level.ERROR, "10.3", start_quantity),
    Rule("completion-quantity", Level.ERROR, "10.3", completion_quantity),
    Rule("loop-unbounded", Level.ERROR, "choice", loop_unbounded),
    Rule("loop-maximum", Level.ERROR, "choice", loop_maximum),
    Rule("multi-instance-unbounded", Level.ERROR, "10.3.8", multi_instance_unbounded),
    Rule("multi-instance-both", Level.VIOLATION, "10.3.8", multi_instance_both),
    Rule("multi-instance-concurrency", Level.ERROR, "choice", multi_instance_concurrency),
    Rule("multi-instance-event-missing", Level.VIOLATION, "10.3.8", multi_instance_event_missing),
    Rule("receive-without-message", Level.ERROR, "choice", receive_without_message),
    Rule("receive-start-with-incoming", Level.ERROR, "10.3.3", receive_start_with_incoming),
    Rule("script-missing", Level.WARNING, "10.3.3", script_missing),
    Rule("script-format-missing", Level.VIOLATION, "10.3.3", script_format_missing),
    Rule("resource-role", Level.VIOLATION, "10.3.1", resource_role),
    Rule("call-without-target", Level.ERROR, "10.3.6", call_without_target),
    Rule("call-target-wrong", Level.ERROR, "10.3.6", call_target_wrong),
    Rule("call-without-none-start", Level.ERROR, "10.5.2", call_without_none_start),
    Rule("ad-hoc-empty", Level.VIOLATION, "10.3.5", ad_hoc_empty),
    Rule("ad-hoc-start-or-end", Level.ERROR, "10.3.5", ad_hoc_start_or_end),
    Rule("public-executable", Level.VIOLATION, "10.2", public_executable),
    Rule("process-not-executable", Level.WARNING, "10.2", not_executable),
)
"""Rules about activities, and about the process as a whole."""
