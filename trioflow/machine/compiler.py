"""From a definition to a program: every node bound to its behaviour, every expression compiled once.

What is not executed is refused here, with element, line, reason and remedy; nothing is skipped.  All
findings of a process come out of one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from attrs import define, evolve, field, frozen

from trioflow.errors import ExpressionError
from trioflow.expressions import Languages, Script
from trioflow.machine.behaviours import COMPILERS
from trioflow.machine.behaviours.base import Behaviour, Refused
from trioflow.machine.behaviours.data_flow import data_names, data_plan, data_stores
from trioflow.machine.behaviours.events import catchers_of
from trioflow.machine.behaviours.repeating import frame_of
from trioflow.machine.behaviours.undoing import handlers_of, undo_of
from trioflow.machine.program import (
    ActivityProgram,
    Evaluable,
    FlowProgram,
    NodeProgram,
    Options,
    Program,
    ScopeProgram,
)
from trioflow.model import (
    TRIOFLOW_NAMESPACE,
    Activity,
    AdHocSubProcess,
    BaseElement,
    BoundaryEvent,
    CancelEventDefinition,
    CatchEvent,
    CompensateEventDefinition,
    ComplexGateway,
    DataObject,
    ErrorEventDefinition,
    EscalationEventDefinition,
    Event,
    ExclusiveGateway,
    Expression,
    FlowNode,
    Graph,
    InclusiveGateway,
    Interface,
    IntermediateCatchEvent,
    LinkEventDefinition,
    MessageEventDefinition,
    Operation,
    Process,
    StartEvent,
    SubProcess,
)
from trioflow.model.digest import DIGEST_ALGORITHM, shape_digest
from trioflow.model.findings import Finding, Level
from trioflow.values import Value, ValueCodec

__all__ = ["Compilation", "Constant", "compile_program"]

NOT_EXECUTED = "not-executed"


@frozen
class Constant:
    """A literal where an expression could stand."""

    value: Any

    @property
    def text(self) -> str:
        """The literal as text."""
        return str(self.value)

    @property
    def names(self) -> frozenset[str]:
        """It reads none."""
        return frozenset()

    def evaluate(self, names: Mapping[str, Value], now: datetime) -> Value:  # noqa: ARG002  # the port's signature
        """The literal."""
        return self.value


@define(eq=False)
class Compilation:
    """The work on one process: what behaviours ask for while they are bound, and what was found."""

    graph: Graph
    languages: Languages
    findings: list[Finding] = field(factory=list)
    handlers: set[str] = field(factory=set)
    data_names: dict[str, str] = field(init=False)
    """The name of every data element, by its id."""
    data_stores: frozenset[str] = field(init=False)
    """The ids of the references to data stores."""
    undone_by: dict[str, str] = field(init=False)
    """Activity to its compensation handler."""

    def __attrs_post_init__(self) -> None:
        self.data_names = data_names(self.graph)
        self.data_stores = data_stores(self.graph)
        self.undone_by = handlers_of(self.graph)

    # -------------------------------------------------------------- for the compilers of behaviours

    def expression(self, element: BaseElement, expression: Expression) -> Evaluable:
        """Compile an expression in its own language, else the file's, else the engine's default."""
        language = expression.language or self.graph.definitions.expression_language or None
        return self._compiled(element, lambda: self.languages.expression(expression.text, language))

    def script(self, element: BaseElement, text: str, language: str | None) -> Script | None:
        """Compile a script; None: it was refused."""
        try:
            return self.languages.script(text, language)
        except ExpressionError as error:
            remedy = "Correct the script or its scriptFormat."
            self.fault(element, "script", f"its script cannot be used: {error}", remedy)
            return None

    def own_expression(self, element: BaseElement, name: str) -> Evaluable | None:
        """Trioflow's own attribute ``name``, as an expression of the default language."""
        text = element.extensions.own(name)
        if text is None:
            return None
        return self._compiled(element, lambda: self.languages.expression(text.removeprefix("="), None))

    def own_value(self, element: BaseElement, name: str) -> Evaluable | None:
        """Trioflow's own attribute ``name``: a literal, or with a leading ``=`` an expression."""
        text = element.extensions.own(name)
        if text is None or text.startswith("="):
            return self.own_expression(element, name)
        return Constant(text)

    def value(self, element: BaseElement, text: str) -> Evaluable:
        """A literal, or with a leading ``=`` an expression of the default language."""
        if not text.startswith("="):
            return Constant(text)
        return self._compiled(element, lambda: self.languages.expression(text[1:], None))

    def own_number(self, element: BaseElement, name: str) -> Evaluable | None:
        """Trioflow's own attribute ``name``: an integer, or with a leading ``=`` an expression."""
        text = element.extensions.own(name)
        if text is None or text.startswith("="):
            return self.own_expression(element, name)
        try:
            return Constant(int(text))
        except ValueError:
            remedy = "Write a number, or '=' and an expression."
            self.fault(element, "bad-value", f"its {name} is {text!r}, no integer.", remedy)
            return None

    def operation(self, ref: str | None) -> Operation | None:
        """The operation of that id, in any interface of the document."""
        for root in self.graph.definitions.root_elements:
            if isinstance(root, Interface):
                for operation in root.operations:
                    if ref and operation.id == ref:
                        return operation
        return None

    def handler(self, name: str) -> str:
        """Note that the process needs this handler."""
        self.handlers.add(name)
        return name

    def refuse(self, element: BaseElement, what: str, remedy: str) -> Behaviour:
        """The element is legal BPMN, but not executed by this version."""
        message = f"{what} is not executed by this version of trioflow."
        return self.fault(element, NOT_EXECUTED, message, _sentence(remedy))

    def fault(self, element: BaseElement, rule: str, message: str, remedy: str) -> Behaviour:
        """The element cannot be executed as it is drawn."""
        self.findings.append(
            Finding.about(element, level=Level.ERROR, rule=rule, message=_sentence(message), remedy=_sentence(remedy))
        )
        return Refused()

    def start_events(self, container: str) -> list[StartEvent]:
        """The none start events of a scope."""
        starts = (node for node in self.graph.children[container] if isinstance(node, StartEvent))
        return [node for node in starts if not self.graph.event_definitions(node) and not node.event_definition_refs]

    def starts(self, container: Process | SubProcess) -> list[FlowNode]:
        """Where a scope's tokens start: its none starts, or without any start event all nodes without incoming flow."""
        nodes = self.graph.children[container.id]
        if any(isinstance(node, StartEvent) for node in nodes):
            return list(self.start_events(container.id))
        return [node for node in nodes if self._starts_by_itself(node)]

    # -------------------------------------------------------------- the pass

    def _starts_by_itself(self, node: FlowNode) -> bool:
        if self.graph.incoming.get(node.id) or isinstance(node, BoundaryEvent):
            return False
        if isinstance(node, SubProcess) and node.triggered_by_event:
            return False
        return not (isinstance(node, Activity) and node.is_for_compensation)

    def _compiled(self, element: BaseElement, compile_it: Callable[[], Evaluable]) -> Evaluable:
        try:
            return compile_it()
        except ExpressionError as error:
            remedy = "Correct the expression or its language."
            self.fault(element, "expression", f"an expression cannot be used: {error}", remedy)
            return Constant(None)

    def flow_programs(self) -> dict[str, FlowProgram]:
        """Every connected flow, with its condition compiled."""
        programs: dict[str, FlowProgram] = {}
        for flows in self.graph.outgoing.values():
            for flow in flows:
                condition = flow.condition_expression
                programs[flow.id] = FlowProgram(
                    id=flow.id,
                    source=flow.source_ref,
                    target=flow.target_ref,
                    condition=None if condition is None else self.expression(flow, condition),
                )
        return programs

    def node_program(self, node: FlowNode, flows: Mapping[str, FlowProgram]) -> NodeProgram:
        """The node with its behaviour and its flows."""
        compiler = COMPILERS.get(type(node))
        if compiler is None:
            behaviour = self.refuse(node, _a(node.tag), "Model it with the elements that are executed")
        else:
            behaviour = compiler(self, node)
        container = self.graph.parent[node.id]
        outgoing = tuple(flows[flow.id] for flow in self.graph.outgoing.get(node.id, ()))
        default = flows.get(_default_of(node) or "")
        activity = self._activity_program(node) if isinstance(node, Activity) else None
        return NodeProgram(
            id=node.id,
            name=node.name or "",
            element=node,
            container=container,
            behaviour=behaviour,
            outgoing=outgoing,
            incoming=tuple(flows[flow.id] for flow in self.graph.incoming.get(node.id, ())),
            plain=tuple(flow for flow in outgoing if flow.condition is None and flow is not default),
            conditional=tuple(flow for flow in outgoing if flow.condition is not None and flow is not default),
            default=default,
            is_activity=isinstance(node, Activity),
            is_for_compensation=isinstance(node, Activity) and node.is_for_compensation,
            activity=activity,
            has_inputs=activity is not None and activity.data is not None and bool(activity.data.inputs),
            copies=node.completion_quantity if isinstance(node, Activity) else 1,
            jumps=self._jumps(node, container),
            attached_to=self._host(node),
        )

    def _activity_program(self, activity: Activity) -> ActivityProgram | None:
        """What the activity has beyond its own work; None: nothing."""
        data = data_plan(self, activity)
        events = self.graph.boundary.get(activity.id, ())
        program = ActivityProgram(
            boundaries=tuple(event.id for event in events if self._waits(event)),
            catchers=catchers_of(self, events),
            start_quantity=activity.start_quantity,
            frame=frame_of(self, activity, data),
            data=data,
            undo=undo_of(self.graph, activity, self.undone_by),
            in_ad_hoc=isinstance(self.graph.container(activity.id), AdHocSubProcess),
            cancelled=next((event.id for event in events if self._cancels(event)), None),
        )
        return None if program == ActivityProgram() else program

    def _cancels(self, event: BoundaryEvent) -> bool:
        return any(isinstance(each, CancelEventDefinition) for each in self.graph.event_definitions(event))

    def _waits(self, event: CatchEvent) -> bool:
        definitions = self.graph.event_definitions(event)
        return any(not isinstance(each, _LOOKED_FOR) for each in definitions)

    def _jumps(self, node: FlowNode, container: str) -> tuple[str, ...]:
        if not isinstance(node, IntermediateCatchEvent):
            return ()
        names = {each.name for each in self.graph.event_definitions(node) if isinstance(each, LinkEventDefinition)}
        sources = self.graph.link_sources(container)
        return tuple(source.id for name in sorted(names, key=str) for source in sources.get(name or "", ()))

    def _host(self, node: FlowNode) -> str | None:
        if not isinstance(node, BoundaryEvent):
            return None
        definitions = self.graph.event_definitions(node)
        compensates = any(isinstance(each, CompensateEventDefinition) for each in definitions)
        return None if compensates else node.attached_to_ref

    def refuse_unknown_attributes(self) -> None:
        """An attribute of our own namespace that means nothing where it is is a misspelling, not an extension."""
        prefix = f"{{{TRIOFLOW_NAMESPACE}}}"
        elements = {id(element): element for element in self._carriers()}  # events can share a definition
        for element in elements.values():
            known = _OWN_ATTRIBUTES.get(element.tag, frozenset())
            for name, _ in element.extensions.attributes:
                if name.startswith(prefix) and name.removeprefix(prefix) not in known:
                    self.fault(
                        element,
                        "unknown-attribute",
                        f"It has trioflow:{name.removeprefix(prefix)}, which means nothing on {_a(element.tag)}.",
                        f"Known there: {', '.join(sorted(known)) or 'none'}.",
                    )

    def _carriers(self) -> Iterator[BaseElement]:
        """Where somebody could write an attribute of ours and count on it."""
        yield self.graph.process
        for flows in self.graph.outgoing.values():
            yield from flows
        for node in self.graph.nodes.values():
            yield node
            if isinstance(node, Activity) and node.loop_characteristics is not None:
                yield node.loop_characteristics
            if isinstance(node, Event):
                yield from self._definitions(node)

    def _definitions(self, event: Event) -> Iterator[BaseElement]:
        for definition in self.graph.event_definitions(event):
            yield definition
            if isinstance(definition, MessageEventDefinition) and definition.message_ref in self.graph.roots:
                yield self.graph.roots[definition.message_ref]

    def options(self, options: Options) -> Options:
        """The engine's options, with what the process says for itself."""
        text = self.graph.process.extensions.own("presumedAbort")
        if text not in {None, "true", "false"}:
            message = f"its presumedAbort is {text!r}."
            self.fault(self.graph.process, "bad-value", message, "Write true or false, or leave it out.")
        return options if text is None else evolve(options, presumed_abort=text == "true")

    def scope_program(self, container: Process | SubProcess) -> ScopeProgram:
        """Where the scope starts and what it declares."""
        starts = self.starts(container)
        declared = [each.name or each.id for each in container.flow_elements if isinstance(each, DataObject)]
        declared += [each.name or each.id for each in container.properties]
        handlers = tuple(self._handler_starts(container))
        triggered = [node for node in self.graph.children[container.id] if isinstance(node, StartEvent)]
        return ScopeProgram(
            id=container.id,
            starts=tuple(node.id for node in starts),
            implicit=not any(isinstance(node, StartEvent) for node in starts),
            nodes=tuple(node.id for node in self.graph.children[container.id]),
            declared=tuple(dict.fromkeys(declared)),
            handlers=tuple(start.id for start in handlers if self._waits(start)),
            catchers=catchers_of(self, handlers),
            triggered=tuple(node.id for node in triggered if node not in starts),
        )

    def _handler_starts(self, container: Process | SubProcess) -> Iterator[StartEvent]:
        """The start events of the scope's event sub-processes."""
        for node in self.graph.children[container.id]:
            if isinstance(node, SubProcess) and node.triggered_by_event:
                yield from (inner for inner in self.graph.children[node.id] if isinstance(inner, StartEvent))

    def refuse_process_features(self) -> None:
        """What a process can carry besides its nodes."""
        process = self.graph.process
        if process.correlation_subscriptions:
            self.refuse(process, "a correlation subscription", "Give the message events a trioflow:correlationKey")
        if process.io_specification is not None:
            self.refuse(process, "an ioSpecification of a process", "Pass variables by name")


_LOOKED_FOR = (ErrorEventDefinition, EscalationEventDefinition, CompensateEventDefinition, CancelEventDefinition)
"""What is no wait: who throws it looks for its catcher."""

_OWN_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "userTask": frozenset({"assignee", "candidateGroups", "candidateUsers", "dueDate", "priority"}),
    "multiInstanceLoopCharacteristics": frozenset({"maxConcurrent"}),
    "messageEventDefinition": frozenset({"correlationKey"}),
    "receiveTask": frozenset({"correlationKey"}),
    "process": frozenset({"presumedAbort"}),
    "callActivity": frozenset({"businessKey", "version", "versionTag"}),
    "adHocSubProcess": frozenset({"activities", "router"}),
    "sendTask": frozenset({"correlationKey"}),
    "timerEventDefinition": frozenset({"timeZone"}),
}
"""trioflow's own attributes, by the element that they are executed on."""


def _default_of(node: FlowNode) -> str | None:
    gateways = ExclusiveGateway | InclusiveGateway | ComplexGateway
    return node.default if isinstance(node, Activity | gateways) else None


def _a(tag: str) -> str:
    """The tag with its article; a userTask is none of those that want "an"."""
    return f"an {tag}" if tag.startswith(("a", "e", "i", "o")) else f"a {tag}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


_DEFAULTS = Options()


def compile_program(
    graph: Graph, languages: Languages, codec: ValueCodec, *, options: Options = _DEFAULTS
) -> tuple[Program | None, tuple[Finding, ...]]:
    """Compile one process.  The program is None where a finding is an error.

    ``graph`` must have passed the checks that make it consistent (ids unique, flows connected).
    """
    work = Compilation(graph, languages)
    work.refuse_process_features()
    work.refuse_unknown_attributes()
    flows = work.flow_programs()
    nodes = {node.id: work.node_program(node, flows) for node in graph.nodes.values()}
    containers: list[Process | SubProcess] = [graph.process]
    containers += [node for node in graph.nodes.values() if isinstance(node, SubProcess)]
    scopes = {container.id: work.scope_program(container) for container in containers}
    options = work.options(options)
    findings = tuple(work.findings)
    if findings:
        return None, findings
    program = Program(
        key=graph.process.id,
        graph=graph,
        digest=shape_digest(graph),
        digest_algorithm=DIGEST_ALGORITHM,
        codec=codec,
        nodes=nodes,
        flows=flows,
        scopes=scopes,
        handler_names=frozenset(work.handlers),
        ad_hoc=frozenset(node.id for node in graph.nodes.values() if isinstance(node, AdHocSubProcess)),
        options=options,
    )
    return program, findings
