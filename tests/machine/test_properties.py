"""Random processes: block-structured ones always end, and no graph of gateways breaks an invariant.

The driver proves the invariants after every event; the random graphs hold the search for stuck joins against the
one of `violations`, which walks the other way.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machine.support import NOON, Driver, Store, compiled, differences, documents, failure, identity, seen
from trioflow.checkpoint.recorder import Recorder
from trioflow.facts import Status
from trioflow.machine.apply import apply, new_state
from trioflow.machine.events import (
    ActivityCompleted,
    ActivityFailed,
    DropIncident,
    Event,
    ResolveIncident,
    RetryIncident,
    Start,
    TimerDue,
)
from trioflow.machine.explain import tokens
from trioflow.machine.invariants import violations
from trioflow.machine.program import Program
from trioflow.machine.state import IncidentState, MessageWait, RetryWait, State, TaskWait, TimerWait, Track, TrackState
from trioflow.model.builder import Path, ProcessBuilder, Scope, message, timer

EXAMPLES = 200
MOST_FAILURES = 3
"""Steps that fail in one run: a loop whose steps always fail has no end."""

# ------------------------------------------------------------------ block-structured processes

Block = tuple[str, tuple[Any, ...]]

LEAVES = st.sampled_from(["task", "service", "script", "user", "timer", "message"]).map(lambda kind: (kind, ()))


def _compound(blocks: st.SearchStrategy[Block]) -> st.SearchStrategy[Block]:
    kinds = st.sampled_from(["sequence", "exclusive", "parallel", "sub-process", "loop"])
    return st.tuples(kinds, st.lists(blocks, min_size=1, max_size=3).map(tuple))


BLOCKS = st.recursive(LEAVES, _compound, max_leaves=7)


class Writer:
    """Draws blocks into a builder; every node gets a number."""

    def __init__(self) -> None:
        self._numbers = count()

    def draw(self, path: Path, block: Block) -> Path:
        """Draw the block behind the path, and return the path behind the block."""
        kind, parts = block
        name = f"n{next(self._numbers)}"
        match kind:
            case "sequence":
                for part in parts:
                    path = self.draw(path, part)
                return path
            case "exclusive":
                return self._split(path.exclusive(name), path.scope.exclusive(f"{name}m"), parts, choose=True)
            case "parallel":
                return self._split(path.parallel(name), path.scope.parallel(f"{name}m"), parts, choose=False)
            case "sub-process":
                sub = path.subprocess(name)
                self._inside(sub.inside, parts)
                return sub
            case "loop":
                return self._loop(path, name, parts)
            case _:
                return self._leaf(path, kind, name)

    def _leaf(self, path: Path, kind: str, name: str) -> Path:
        leaves: dict[str, Callable[[], Path]] = {
            "task": lambda: path.task(name),
            "service": lambda: path.service(name),
            "script": lambda: path.script(name, "x = 1"),
            "user": lambda: path.user(name),
            "timer": lambda: path.catch(name, on=timer(duration="PT1H")),
            "message": lambda: path.catch(name, on=message("m")),
        }
        return leaves[kind]()

    def _split(self, split: Path, merge: Path, parts: tuple[Block, ...], *, choose: bool) -> Path:
        for number, part in enumerate((*parts, None)):  # one branch more, which is a bare flow
            last = number == len(parts)
            branch = split if not choose else split.otherwise() if last else split.when(f"choice == {number}")
            if part is None:
                branch.to(merge)
                continue
            # A task in front, because a branch may begin with nothing (an empty sequence cannot be drawn).
            self.draw(branch.task(f"{split.id}b{number}"), part).to(merge)
        return merge

    def _inside(self, scope: Scope, parts: tuple[Block, ...]) -> None:
        path = scope.start(f"s{next(self._numbers)}")
        for part in parts:
            path = self.draw(path, part)

    def _loop(self, path: Path, name: str, parts: tuple[Block, ...]) -> Path:
        again = path.exclusive(name)
        body = again
        for part in parts:
            body = self.draw(body, part)
        gate = body.service(f"{name}count").exclusive(f"{name}gate")
        gate.when(f"{name}count < 2").to(again)
        return gate.otherwise().task(f"{name}out")


def _program(block: Block) -> Program:
    built = ProcessBuilder("p")
    Writer().draw(built.start("s"), block).end("e")
    return compiled(built)


def _move(run: Driver, data: st.DataObject) -> None:
    """Let something happen to one of the tokens that can move."""
    still = {TrackState.JOINING, TrackState.HOSTING}
    movable = [track for track in run.state.tracks.values() if track.state not in still]
    stuck = [each for each in run.state.open_incidents() if not each.track]
    if not movable:
        run.apply(ResolveIncident(incident=stuck[0].id))
        return
    track = movable[data.draw(st.integers(0, len(movable) - 1), label="token")]
    if track.incident is not None:
        flows = tuple(flow.id for flow in run.program.nodes[track.node].outgoing[-1:])  # the way out of a loop
        act: Any = data.draw(
            st.sampled_from(
                [ResolveIncident(incident=track.incident.id, flows=flows), DropIncident(incident=track.incident.id)]
            )
        )
        run.apply(act)
    elif isinstance(track.wait, TimerWait | RetryWait):
        run.due(track.node)
    elif isinstance(track.wait, MessageWait):
        run.receive(track.node, {"choice": data.draw(st.integers(0, 3), label="choice")})
    elif isinstance(track.wait, TaskWait):
        run.complete(track.node, choice=data.draw(st.integers(0, 3), label="choice"))
    elif len(run.said("activity-failed")) < MOST_FAILURES and data.draw(st.booleans(), label="fails"):
        run.apply(ActivityFailed(track=track.id, step=track.step, failure=failure()))
    else:
        rounds = run.data.get(track.node, 0) + 1
        run.apply(ActivityCompleted(track.id, track.step, {track.node: rounds}))


@settings(max_examples=EXAMPLES)
@given(block=BLOCKS, data=st.data())
def test_block_structured_processes_end_and_leave_nothing_behind(block: Block, data: st.DataObject) -> None:
    """Whatever happens to their tokens in whatever order, they complete, and then no token is alive."""
    run = Driver(_program(block), twins=2)
    run.start(choice=0)
    events = 0
    while not run.state.is_terminal:
        events += 1
        assert events < 2_000, "it does not end"
        _move(run, data)
    assert run.status is Status.COMPLETED
    assert tokens(run.program, run.state) == ()
    assert all(row.state == "dropped" for row in run.store.rows.values())


# ------------------------------------------------------------------ graphs without any structure

KINDS = st.sampled_from(["service", "parallel", "exclusive"])


@st.composite
def _graphs(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, int]]]:
    kinds = draw(st.lists(KINDS, min_size=2, max_size=7))
    ends = st.integers(0, len(kinds) - 1)
    return kinds, draw(st.lists(st.tuples(ends, ends), min_size=2, max_size=12))


def _wild(kinds: list[str], flows: list[tuple[int, int]]) -> Program:
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    add: dict[str, Callable[[str], Path]] = {
        "service": built.service,
        "parallel": built.parallel,
        "exclusive": built.exclusive,
    }
    for number, kind in enumerate(kinds):
        add[kind](f"n{number}")
        fork.to(f"n{number}")
    for source, target in flows:
        chosen = f"choice % 3 != {target % 3}" if kinds[source] == "exclusive" else None
        built.flow(f"n{source}", f"n{target}", condition=chosen)
    return compiled(built, hop_limit=30)


def _acts(state: State, data: st.DataObject) -> Event | None:
    """Something that can happen now: a step ends, fails, is due again, or an operator acts."""
    running = [track for track in state.tracks.values() if track.state in {TrackState.EXECUTING, TrackState.WAITING}]
    incidents = [each for each in state.incidents.values() if each.state is IncidentState.OPEN]
    choices: list[Track | Any] = [*running, *incidents]
    if not choices:
        return None
    chosen = choices[data.draw(st.integers(0, len(choices) - 1))]
    choice = data.draw(st.integers(0, 5))
    if isinstance(chosen, Track):
        if isinstance(chosen.wait, RetryWait):
            return TimerDue(chosen.wait.id, chosen.wait.deadline)
        if choice < 4:
            return ActivityCompleted(chosen.id, chosen.step, {"choice": choice})
        retry_in = timedelta() if choice == 4 else None
        return ActivityFailed(track=chosen.id, step=chosen.step, failure=failure(), retry_in=retry_in)
    if choice == 3:
        return RetryIncident(incident=chosen.id)
    return DropIncident(incident=chosen.id) if choice > 3 else ResolveIncident(incident=chosen.id)


@settings(max_examples=EXAMPLES)
@given(graph=_graphs(), data=st.data())
def test_no_graph_of_gateways_breaks_an_invariant(graph: Any, data: st.DataObject) -> None:
    """Loops, self-loops, joins that wait for each other: after each event all holds, and the fold goes on alike."""
    program = _wild(*graph)
    store = Store(documents(), Recorder(documents(), program, small_base=0, small_tail=300))
    state = new_state(identity(program))
    twin: State | None = None
    event: Event | None = Start(variables={"choice": 0})
    for _ in range(12):
        if event is None or state.is_terminal:
            break
        transition = apply(program, state, event, NOON, budget=150)
        assert violations(program, state) == []
        if transition.pending:  # it forks without end: nothing more to learn from it
            return
        if twin is not None:
            assert seen(apply(program, twin, event, NOON, budget=150)) == seen(transition)
            assert violations(program, twin) == []
        store.take(state)
        twin = store.fold(program, state)
        assert differences(state, twin) == []
        assert violations(program, twin) == []
        event = _acts(state, data)
