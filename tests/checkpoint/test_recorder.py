"""The recorder: base and tail, what is written, tombstones, and the rows of the wait index."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
import pytest

from tests.checkpoint.histories import troubled, waiting
from tests.machine.support import NOON, Driver, compiled, differences, failure, identity
from trioflow.checkpoint.documents import Documents
from trioflow.checkpoint.recorder import SMALL_BASE, SMALL_TAIL, Recorder, key_text
from trioflow.checkpoint.records import IncidentRow, Item, SubscriptionRow, TaskRow, TimerRow
from trioflow.facts import Status
from trioflow.machine.apply import apply, new_state
from trioflow.machine.derive import derive
from trioflow.machine.events import (
    ActivityCompleted,
    ActivityFailed,
    Cancel,
    DropIncident,
    MessageArrived,
    Start,
    TimerDue,
)
from trioflow.machine.program import Program
from trioflow.machine.state import Incidents, State
from trioflow.model.builder import ProcessBuilder, message, timer

# ------------------------------------------------------------------ one instance and its recorder


class Recorded:
    """An instance whose captures the test takes itself."""

    def __init__(self, built: ProcessBuilder, **limits: Any) -> None:
        self.program: Program = compiled(built)
        self.documents = Documents(self.program.codec)
        self.recorder = Recorder(self.documents, self.program, **limits)
        self.state: State = new_state(identity(self.program, business_key="b", tenant="t"))
        self.items: list[Item] = []
        self.slots: dict[int, bytes] = {}

    def apply(self, event: Any, now: Any = NOON) -> Any:
        """Let something happen, without a capture."""
        return apply(self.program, self.state, event, now)

    def take(self, **options: Any) -> Item:
        """Capture."""
        item = self.recorder.item(self.state, commit_id=f"c{len(self.items)}", at=NOON, **options)
        self.items.append(item)
        if item.piece is not None:
            if item.slot == 0:
                self.slots.clear()
            self.slots[item.slot] = item.piece
        return item

    def folded(self) -> State:
        """What the slots make."""
        state = self.documents.fold(tuple(self.slots.values()), instance_id="i-1")
        derive(self.program, state)
        return state


def stepping() -> ProcessBuilder:
    """A loop that forks off one task that stays open, per round."""
    built = ProcessBuilder("p")
    fork = built.start("s").exclusive("again").service("work").parallel("fork")
    fork.to("again")
    fork.user("stays")
    return built


def timed() -> ProcessBuilder:
    """A timer, a message, a step that can fail, side by side."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.catch("timer", on=timer(duration="PT1H"))
    fork.catch("message", on=message("paid", key="order"))
    fork.service("work")
    fork.user("task", name="Do it", candidate_groups=["clerks"], priority=60)
    return built


# ------------------------------------------------------------------ base and tail


def _written(items: int) -> tuple[int, int]:
    """Run so many rounds with a capture each; the bytes that were written, and the sum of the pieces alone."""
    run = Recorded(stepping())
    effects = run.apply(Start()).effects
    run.take()
    written = pieces = 0
    for _ in range(items):
        (step,) = effects
        effects = run.apply(ActivityCompleted(step.track, step.step, {})).effects
        pieces += len(run.documents.piece(run.state))
        item = run.take()
        assert item.piece is not None
        written += len(item.piece)
    assert differences(run.state, run.folded()) == []
    return written, pieces


def test_bytes_written_are_linear_and_below_three_times_the_pieces() -> None:
    """For 100, 1,000 and 10,000 items: per item the same bytes, and never more than three times what was touched."""
    per_item = []
    for items in (100, 1_000, 10_000):
        written, pieces = _written(items)
        assert written < 3 * pieces
        per_item.append(written / items)
    assert max(per_item) < 2 * min(per_item)


def test_a_small_instance_is_one_piece() -> None:
    """While the base is small each commit rewrites slot 0."""
    run = Recorded(stepping())
    effects = run.apply(Start()).effects
    while run.take().slot == 0:
        (step,) = effects
        effects = run.apply(ActivityCompleted(step.track, step.step, {})).effects
    bases = [len(item.piece or b"") for item in run.items[:-1]]
    assert all(size <= SMALL_BASE for size in bases[:-1])
    assert bases[-1] > SMALL_BASE
    assert run.items[-1].slot == 1


def test_the_tail_grows_to_its_limit_and_then_the_base_is_written_anew() -> None:
    """Slots are filled one after the other; the tail never exceeds 16 KB or the base, whichever is more."""
    run = Recorded(stepping())
    effects = run.apply(Start()).effects
    bases = 0
    for _ in range(600):
        item = run.take()
        bases += item.slot == 0 and len(item.piece or b"") > SMALL_BASE
        assert list(run.slots) == list(range(len(run.slots)))
        assert sum(map(len, list(run.slots.values())[1:])) <= max(SMALL_TAIL, len(run.slots[0]))
        (step,) = effects
        effects = run.apply(ActivityCompleted(step.track, step.step, {})).effects
    assert 2 <= bases <= 8


def test_a_loaded_instance_goes_on_where_its_tail_ended() -> None:
    """Version, slots and sizes are taken over; the next piece is appended."""
    run = Recorded(stepping(), small_base=0)
    effects = run.apply(Start()).effects
    run.take()
    for _ in range(3):
        (step,) = effects
        effects = run.apply(ActivityCompleted(step.track, step.step, {})).effects
        run.take()
    state = run.folded()
    other = Recorder(run.documents, run.program, small_base=0)
    other.loaded(state, version=4, pieces=tuple(run.slots.values()))
    assert (other.version, other.slots, other.base, other.tail) == (
        run.recorder.version,
        run.recorder.slots,
        run.recorder.base,
        run.recorder.tail,
    )
    (step,) = effects
    for each in (state, run.state):
        apply(run.program, each, ActivityCompleted(step.track, step.step, {}), NOON)
    item = other.item(state, commit_id="x", at=NOON)
    assert (item.slot, item.piece, item.expected, item.new) == (4, run.take().piece, 4, None)


# ------------------------------------------------------------------ what a piece holds


def test_a_piece_holds_only_what_was_touched() -> None:
    """A step that goes on touches its track, its entries, the header; nothing of the ten others."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    for number in range(10):
        fork.service(f"a{number}").service(f"b{number}")
    run = Recorded(built, small_base=0)
    step = run.apply(Start(variables={"x": 1})).effects[4]
    run.take()
    run.apply(ActivityCompleted(step.track, step.step, {}))
    document = orjson.loads(run.take().piece or b"")
    assert document.keys() == {"v", "h", "t", "e"}
    assert list(document["t"]) == [str(step.track)]
    assert document["e"] == {"1": {"b4": 1}}


def test_a_capture_without_change_is_an_empty_piece() -> None:
    """Nothing touched, nothing written."""
    run = Recorded(timed(), small_base=0)
    run.apply(Start(variables={"order": 1}))
    run.take()
    assert run.take().piece == b'{"v":1}'


def test_what_was_made_and_removed_since_the_last_capture_leaves_no_trace() -> None:
    """No tombstone, no index row to delete; what the store knows is removed with both."""
    built = ProcessBuilder("p")
    sub = built.start("s").service("work").subprocess("sub")
    sub.inside.property("local")
    sub.inside.catch("inner", on=timer(duration="PT1H"))
    sub.service("after")
    run = Recorded(built, small_base=0)
    (step,) = run.apply(Start()).effects
    run.take()
    run.apply(ActivityCompleted(step.track, step.step, {}))
    (wait,) = run.state.waits.values()
    scope, track = max(run.state.scopes), wait.track
    run.apply(TimerDue(wait.id, wait.deadline), wait.deadline)
    item = run.take()
    document = orjson.loads(item.piece or b"")
    made = {str(key) for key in (scope, track, wait.id)}
    assert not made & {key for part in "sdetw" for key in document.get(part, {})}
    assert (item.upserts, item.deleted) == ((), ())


def test_what_the_store_knows_is_removed_by_a_tombstone() -> None:
    """The same, with a capture in between: null for each, and the scope's data and entries go with it."""
    built = ProcessBuilder("p")
    sub = built.start("s").subprocess("sub")
    sub.inside.property("local")
    sub.inside.service("work").catch("inner", on=timer(duration="PT1H"))
    sub.service("after")
    run = Recorded(built, small_base=0)
    (step,) = run.apply(Start()).effects
    run.apply(ActivityCompleted(step.track, step.step, {"local": 1}))
    run.take()
    (wait,) = run.state.waits.values()
    scope = max(run.state.scopes)
    run.apply(TimerDue(wait.id, wait.deadline), wait.deadline)
    item = run.take()
    document = orjson.loads(item.piece or b"")
    assert document["s"] == {str(scope): None}
    assert document["t"][str(wait.track)] is None
    assert document["w"] == {str(wait.id): None}
    assert item.deleted == (("timer", wait.id),)
    assert differences(run.state, run.folded()) == []
    left = orjson.loads(run.documents.base(run.folded()))
    assert (left["d"], left["e"].keys()) == ({}, {"1"})


# ------------------------------------------------------------------ items and index rows


def test_the_first_item_makes_the_instance_and_every_item_counts_versions() -> None:
    """`new` holds the columns that never change; `expected` is the version that the row must have."""
    run = Recorded(timed())
    run.apply(Start(variables={"order": 1}))
    first = run.take(consumed=(7,), declined=(8,), release=True)
    assert first.new is not None
    assert (first.new.instance_id, first.new.business_key, first.new.tenant) == ("i-1", "b", "t")
    assert (first.expected, first.consumed, first.declined, first.release) == (0, (7,), (8,), True)
    second = run.take()
    assert (second.new, second.expected, second.release) == (None, 1, False)


def test_each_wait_has_its_row() -> None:
    """Timer, subscription with its key in canonical text, task as people query it."""
    run = Recorded(timed())
    run.apply(Start(variables={"order": {"n": 1, "a": [2]}}))
    due, subscription, task = run.take().upserts
    assert isinstance(due, TimerRow)
    assert isinstance(subscription, SubscriptionRow)
    assert isinstance(task, TaskRow)
    assert due.due == NOON + timedelta(hours=1)
    assert (subscription.name, subscription.key, subscription.business_key) == ("paid", '{"a":[2],"n":1}', "b")
    assert (task.node_id, task.name, task.candidate_groups, task.priority) == ("task", "Do it", ("clerks",), 60)


def _timer(run: Recorded) -> None:
    wait = next(each for each in run.state.waits.values() if hasattr(each, "deadline"))
    run.apply(TimerDue(wait.id, wait.deadline), wait.deadline)


def _message(run: Recorded) -> None:
    wait = next(each for each in run.state.waits.values() if hasattr(each, "key"))
    run.apply(MessageArrived(wait=wait.id, delivery=1, name="paid"))


@pytest.mark.parametrize("with_piece", [True, False])
@pytest.mark.parametrize("end, kind", [(_timer, "timer"), (_message, "subscription")], ids=["timer", "message"])
def test_a_wait_that_ended_deletes_its_row(*, end: Callable[[Recorded], None], kind: str, with_piece: bool) -> None:
    """With a piece and without one."""
    run = Recorded(timed())
    run.apply(Start(variables={"order": 1}))
    known = {row.kind: row.wait_id for row in run.take(with_piece=with_piece).upserts}
    end(run)
    item = run.take(with_piece=with_piece)
    assert (item.upserts, item.deleted) == ((), ((kind, known[kind]),))


def test_a_retry_and_an_incident_have_rows_of_their_own() -> None:
    """A scheduled retry is a timer; an incident is upserted, and deleted when it is closed."""
    run = Recorded(timed())
    (step,) = run.apply(Start(variables={"order": 1})).effects
    run.take()
    broke = failure(causes=["a"])
    run.apply(ActivityFailed(track=step.track, step=step.step, failure=broke, retry_in=timedelta(minutes=1)))
    item = run.take()
    (row,) = item.upserts
    assert isinstance(row, TimerRow)
    assert (row.due, item.has_incidents) == (NOON + timedelta(minutes=1), False)
    (again,) = run.apply(TimerDue(row.wait_id, NOON + timedelta(minutes=1)), NOON + timedelta(minutes=1)).effects
    run.apply(ActivityFailed(track=again.track, step=again.step, failure=broke))
    item = run.take()
    (incident,) = item.upserts
    assert isinstance(incident, IncidentRow)
    assert (incident.incident_kind, incident.attempts, incident.causes) == ("retries-exhausted", 2, ("a",))
    assert (item.deleted, item.has_incidents) == ((("timer", row.wait_id),), True)
    run.apply(Cancel(reason="enough"))
    item = run.take()
    assert ("incident", incident.wait_id) in item.deleted
    assert len(item.deleted) == 4
    assert (item.has_incidents, item.status, item.reason) == (False, Status.TERMINATED, "enough")


def test_a_capture_looks_through_no_dead_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropped in bulk, an incident each capture: whether one is still open is known without counting."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    for number in range(5):
        fork.service(f"t{number}")
    run = Recorded(built, small_base=0, small_tail=100_000)
    for step in run.apply(Start()).effects:
        run.apply(ActivityFailed(track=step.track, step=step.step, failure=failure(), retry_in=None))
    assert run.take().has_incidents
    said = []
    for incident in list(run.state.incidents):
        run.apply(DropIncident(incident=incident))
        with monkeypatch.context() as patch:
            for look in ("__iter__", "items", "keys", "values"):
                patch.setattr(Incidents, look, _never)
            said.append(run.take().has_incidents)
    assert said == [True] * 4 + [False]
    assert len(run.state.incidents) == 5
    assert not run.folded().has_incidents


def _never(*_: object) -> Any:
    raise AssertionError("the table is looked through")


def test_without_pieces_the_next_one_is_a_base() -> None:
    """A volatile store takes index rows only; when the instance parks, the whole state is written."""
    run = Recorded(stepping(), small_base=0)
    effects = run.apply(Start()).effects
    for number in range(5):
        assert run.take(with_piece=False).piece is None
        (step,) = effects
        effects = run.apply(ActivityCompleted(step.track, step.step, {"round": number})).effects
    item = run.take()
    assert item.slot == 0
    assert differences(run.state, run.folded()) == []
    assert [each.expected for each in run.items] == [0, 1, 2, 3, 4, 5]


def test_a_tombstone_is_not_lost_over_captures_without_a_piece() -> None:
    """What a base held and was removed meanwhile does not come back from the next piece."""
    run = Recorded(timed(), small_base=0)
    run.apply(Start(variables={"order": 1}))
    run.take()
    _timer(run)
    run.take(with_piece=False)
    _message(run)
    run.take()
    assert differences(run.state, run.folded()) == []


@pytest.mark.parametrize(
    "history, kinds",
    [(waiting, ["subscription"] * 2 + ["task"] * 2 + ["timer"] * 3), (troubled, ["incident"] * 6)],
    ids=["waiting", "troubled"],
)
def test_the_rows_of_a_state_are_those_of_its_waits_and_incidents(
    history: Callable[[], Driver], kinds: list[str]
) -> None:
    """After everything that the drivers did: no row too many, none too few."""
    assert sorted(kind for kind, _ in history().store.rows) == kinds


def test_equal_keys_and_only_those_have_equal_texts() -> None:
    """Records by their sorted names; 1, 1.0, "1" and True are four different keys."""
    documents = Documents(compiled(timed()).codec)
    assert key_text(documents, {"a": 1, "b": 2}) == key_text(documents, {"b": 2, "a": 1})
    keys: list[Any] = [1, 1.0, "1", True, [1], {"a": 1}, b"1"]
    assert len({key_text(documents, key) for key in keys}) == len(keys)
