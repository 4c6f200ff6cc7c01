"""Models for the soundness tests: drawn at random, and built to a size."""

from __future__ import annotations

from attrs import define, field
from hypothesis import strategies as st

from trioflow.model import Graph, ProcessBuilder
from trioflow.model.builder import error, terminate, timer

GATEWAYS = ("exclusive", "parallel", "inclusive")


@define(eq=False)
class Draft:
    """Nodes and flows of one process; conditions and defaults are put where the kind of the source needs them."""

    kinds: dict[str, str] = field(factory=dict)
    flows: list[tuple[str, str]] = field(factory=list)

    def node(self, kind: str) -> str:
        """A new node of a kind; returns its id."""
        name = f"{kind}{len(self.kinds)}"
        self.kinds[name] = kind
        return name

    def flow(self, source: str, target: str) -> None:
        """A flow."""
        self.flows.append((source, target))

    def graph(self) -> Graph:
        """The process, indexed."""
        process = ProcessBuilder("p")
        for name, kind in self.kinds.items():
            _place(process, name, kind)
        for name, kind in self.kinds.items():
            if kind in ("boundary", "reminder"):
                host = name.partition(".")[2]
                process.boundary(host, name, on=timer(duration="PT1H"), interrupting=kind == "boundary")
        last = {source: number for number, (source, _) in enumerate(self.flows)}
        several = {source for number, (source, _) in enumerate(self.flows) if number != last[source]}
        for number, (source, target) in enumerate(self.flows):
            chooses = source in several and self.kinds[source] in ("exclusive", "inclusive", "splitting")
            condition = f"x == {number}" if chooses and number != last[source] else None
            default = chooses and number == last[source] and self.kinds[source] != "splitting"
            process.flow(source, target, flow_id=f"f{number}", condition=condition, default=default)
        definitions = process.build()
        return Graph.of(definitions, next(definitions.processes))


def _place(process: ProcessBuilder, name: str, kind: str) -> None:
    match kind:
        case "start":
            process.start(name)
        case "task" | "splitting":
            process.task(name)
        case "exclusive":
            process.exclusive(name)
        case "parallel":
            process.parallel(name)
        case "inclusive":
            process.inclusive(name)
        case "end":
            process.end(name)
        case "terminate":
            process.end(name, on=terminate())
        case "error":
            process.end(name, on=error("E"))


# ------------------------------------------------------------------ drawn


@st.composite
def any_drafts(draw: st.DrawFn) -> Draft:
    """A start and up to nine nodes that it leads to, with some more flows, seldom backwards."""
    draft = Draft()
    nodes = [draft.node("start")]
    kinds = st.sampled_from((*GATEWAYS, *GATEWAYS, "task", "splitting", "boundary", "reminder", "end", "terminate"))
    for _ in range(draw(st.integers(2, 9))):
        kind = draw(kinds)
        tasks = [name for name in nodes if draft.kinds[name] in ("task", "splitting")]
        if kind in ("boundary", "reminder"):
            if not tasks:
                continue
            name = f"{kind}{len(draft.kinds)}.{draw(st.sampled_from(tasks))}"
            draft.kinds[name] = kind
        else:
            name = draft.node(kind)
            draft.flow(draw(st.sampled_from(_sources(draft, nodes))), name)
        nodes.append(name)
    for _ in range(draw(st.integers(0, 5))):
        one, other = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        backwards = draw(st.integers(0, 3)) == 0
        source, target = sorted((one, other), key=nodes.index, reverse=backwards)
        if source in _sources(draft, nodes) and draft.kinds[target] not in ("start", "boundary", "reminder"):
            draft.flow(source, target)
    return draft


def _sources(draft: Draft, nodes: list[str]) -> list[str]:
    return [name for name in nodes if draft.kinds[name] not in ("end", "terminate")]


@st.composite
def nested_drafts(draw: st.DrawFn) -> Draft:
    """Blocks in each other, of which some are closed by a gateway of another kind than they are opened with."""
    draft = Draft()
    start = draft.node("start")
    last = _block(draw, draft, start, depth=draw(st.integers(1, 2)))
    draft.flow(last, draft.node("end"))
    return draft


def _block(draw: st.DrawFn, draft: Draft, before: str, *, depth: int) -> str:
    """Append a block, and return its last node."""
    shape = draw(st.sampled_from(("split", "split", "loop", "guard", "sequence"))) if depth else "task"
    match shape:
        case "split":
            return _split(draw, draft, before, depth=depth)
        case "loop":
            head = draft.node("exclusive")
            draft.flow(before, head)
            tail = draft.node("exclusive")
            draft.flow(_block(draw, draft, head, depth=depth - 1), tail)
            draft.flow(tail, head)
            return tail
        case "guard":
            choice = draft.node("exclusive")
            draft.flow(before, choice)
            draft.flow(choice, draft.node(draw(st.sampled_from(("end", "terminate")))))
            return choice
        case "sequence":
            return _block(draw, draft, _block(draw, draft, before, depth=depth - 1), depth=depth - 1)
        case _:
            task = draft.node("task")
            draft.flow(before, task)
            return task


def _split(draw: st.DrawFn, draft: Draft, before: str, *, depth: int) -> str:
    kind = draw(st.sampled_from(GATEWAYS))
    split = draft.node(kind)
    draft.flow(before, split)
    join = draft.node(kind if draw(st.integers(0, 3)) else draw(st.sampled_from(GATEWAYS)))
    for _ in range(draw(st.integers(2, 3))):
        draft.flow(_block(draw, draft, split, depth=depth - 1), join)
    return join


# ------------------------------------------------------------------ built to a size


def chain_of_blocks(size: int) -> Graph:
    """Blocks of all kinds and a loop, one after the other."""
    draft = Draft()
    last = draft.node("start")
    while len(draft.kinds) < size:
        for kind in GATEWAYS:
            last = _diamond(draft, last, kind)
        head, body, tail = draft.node("exclusive"), draft.node("parallel"), draft.node("exclusive")
        draft.flow(last, head)
        draft.flow(head, body)
        draft.flow(_diamond(draft, body, "parallel"), tail)
        draft.flow(tail, head)
        last = tail
    draft.flow(last, draft.node("end"))
    return draft.graph()


def _diamond(draft: Draft, before: str, kind: str) -> str:
    split, join = draft.node(kind), draft.node(kind)
    draft.flow(before, split)
    for _ in range(2):
        task = draft.node("task")
        draft.flow(split, task)
        draft.flow(task, join)
    return join


def nest_of_blocks(size: int) -> Graph:
    """Exclusive and parallel blocks, each inside one branch of the one before."""
    draft = Draft()
    last, joins = draft.node("start"), list[str]()
    while len(draft.kinds) < size:
        kind = GATEWAYS[len(joins) % 3]
        split, join, task = draft.node(kind), draft.node(kind), draft.node("task")
        draft.flow(last, split)
        draft.flow(split, task)
        draft.flow(task, join)
        joins.append(join)
        last = split
    for join in reversed(joins):
        draft.flow(last, join)
        last = join
    draft.flow(last, draft.node("end"))
    return draft.graph()


def wide_block(size: int) -> Graph:
    """One exclusive gateway with many ways, and an inclusive one too."""
    draft = Draft()
    last = draft.node("start")
    for kind in ("exclusive", "inclusive"):
        split, join = draft.node(kind), draft.node(kind)
        draft.flow(last, split)
        for _ in range(size // 2):
            task = draft.node("task")
            draft.flow(split, task)
            draft.flow(task, join)
        last = join
    draft.flow(last, draft.node("end"))
    return draft.graph()


def row_of_guards(size: int) -> Graph:
    """A task and a choice to give up, again and again; all who give up come together."""
    draft = Draft()
    last, merge = draft.node("start"), draft.node("exclusive")
    while len(draft.kinds) < size:
        task, choice = draft.node("task"), draft.node("exclusive")
        draft.flow(last, task)
        draft.flow(task, choice)
        draft.flow(choice, merge)
        last = choice
    for each in (last, merge):
        draft.flow(each, draft.node("end"))
    return draft.graph()
