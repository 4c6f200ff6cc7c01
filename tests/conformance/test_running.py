"""The runner of the conformance suite on small models of our own: what it sees of a run, and how it judges that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.conformance.betsy import Observation, Outcome, Process, judge, labels_of, observe, run
from tests.conformance.cases import Case, Start
from tests.conformance.dialect import Trace
from tests.conformance.support import a_case
from trioflow import ProcessBuilder
from trioflow.machine.behaviours.tasks import Step
from trioflow.model import Definitions, Finding
from trioflow.model.builder import condition, error, terminate, timer
from trioflow.model.findings import Level
from trioflow.xml import write

# ------------------------------------------------------------------ models


def completing(b: ProcessBuilder) -> None:
    """One task, and its end."""
    b.start("s").script("t", "SCRIPT_task1").end("e")


def without_way_out(b: ProcessBuilder) -> None:
    """A gateway none of whose conditions is true."""
    choice = b.start("s").exclusive("choice")
    choice.when("n < 3").end("e1")
    choice.when("n < 5").end("e2")


def throwing(b: ProcessBuilder) -> None:
    """A script whose error nothing catches."""
    b.start("s").script("t", "THROW_ERROR").end("e")


def stuck(b: ProcessBuilder) -> None:
    """A join that only one of its two flows can reach."""
    choice = b.start("s").exclusive("choice")
    join = choice.when("n > 5").script("t", "SCRIPT_task1").parallel("join")
    choice.otherwise().script("u", "SCRIPT_task2").to("join")
    join.end("e")


def waiting(b: ProcessBuilder) -> None:
    """An event that does not come."""
    b.start("s").script("t", "SCRIPT_task1").catch("c", on=condition("n < 3")).end("e")


def failing(b: ProcessBuilder) -> None:
    """An error end event that nothing catches."""
    b.start("s").script("t", "SCRIPT_task1").end("e", on=error("E"))


def terminating(b: ProcessBuilder) -> None:
    """An end for all, before a second token has woken up."""
    fork = b.start("s").parallel("fork")
    fork.end("e1", on=terminate())
    fork.catch("c", on=timer(duration="PT1S")).script("t", "SCRIPT_task1").end("e2")


def late(b: ProcessBuilder) -> None:
    """A line after some time."""
    b.start("s").script("a", "SCRIPT_task1").catch("c", on=timer(duration="PT7S")).script("b", "SCRIPT_task2").end("e")


def mistaken(b: ProcessBuilder) -> None:
    """A script that is none."""
    b.start("s").script("t", "SCRIPT_task9").end("e")


def silent(b: ProcessBuilder) -> None:
    """Nothing at all."""
    b.start("s").end("e")


Draw = Callable[[ProcessBuilder], None]


def built(draw: Draw, key: str = "p") -> Definitions:
    """The model of that drawing."""
    builder = ProcessBuilder(key)
    draw(builder)
    return builder.build()


def case_of(folder: Path, draw: Draw, **fields: Any) -> Case:
    """A case over that drawing, in which ``n`` is 7."""
    file = folder / "model.bpmn"
    file.write_bytes(write(built(draw)))
    return a_case(file, **({"starts": (Start(process="p", variables={"n": 7}),)} | fields))


def seen(case: Case) -> Observation:
    """What comes out of a run of it."""
    return trio.run(observe, case, clock=MockClock(autojump_threshold=0))


# ------------------------------------------------------------------ what is seen


@pytest.mark.parametrize(
    "draw, state, labels",
    [
        (completing, "completed", ["SCRIPT_task1"]),
        (without_way_out, "failed", ["ERROR_runtime"]),
        (throwing, "failed", ["ERROR_runtime"]),
        (stuck, "waiting", ["SCRIPT_task1"]),
        (waiting, "waiting", ["SCRIPT_task1"]),
        (failing, "error-event", ["SCRIPT_task1", "ERROR_thrownErrorEvent"]),
        (terminating, "terminated", []),
        (silent, "completed", []),
    ],
)
def test_states_and_labels(tmp_path: Path, draw: Draw, state: str, labels: list[str]) -> None:
    """How an instance stands has a word of the suite, and its failures a label; a stuck join is one that waits."""
    observation = seen(case_of(tmp_path, draw))
    assert [(process.key, process.state) for process in observation.processes] == [("p", state)]
    assert labels_of(observation, asked=frozenset()) == labels
    assert not observation.refused


def test_refused(tmp_path: Path) -> None:
    """A file that cannot be deployed is told with what refuses it, and nothing is started."""
    observation = seen(case_of(tmp_path, mistaken))
    assert [finding.element_id for finding in observation.refused] == ["t"]
    assert not observation.processes
    assert labels_of(observation, asked=frozenset()) == ["ERROR_deployment"]


def test_not_started(tmp_path: Path) -> None:
    """A start that is refused is a failure of that process, with what was said; the others are started all the same."""
    starts = (Start(process="q", variables={}), Start(process="p", variables={}))
    observation = seen(case_of(tmp_path, completing, starts=starts))
    assert [(process.key, process.state) for process in observation.processes] == [("q", "failed"), ("p", "completed")]
    assert "no process 'q' is deployed" in observation.processes[0].why


def test_late(tmp_path: Path) -> None:
    """A line that comes after the delay of the case is seen too, as a late one."""
    in_time = seen(case_of(tmp_path, late, delay=8.0))
    assert (in_time.trace.lines, in_time.late) == (["SCRIPT_task1", "SCRIPT_task2"], ())
    too_late = seen(case_of(tmp_path, late, delay=6.0))
    assert (too_late.trace.lines, too_late.late) == (["SCRIPT_task1", "SCRIPT_task2"], ("SCRIPT_task2",))


def test_engine_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a bug of the engine stops is in no state that a case can ask for, and the report names the bug."""

    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    case = case_of(tmp_path, completing, final_state="waiting")
    monkeypatch.setattr(Step, "completed", broken)
    result = run(case)
    assert result.outcome is Outcome.FAILED
    assert "p is broken, but should be waiting; ZeroDivisionError: a bug of ours" in result.why


def test_only_what_is_asked_for() -> None:
    """Marker, data and parallel work are labels where the case asks for them; a failure always is one."""
    observation = Observation(
        trace=Trace(lines=["SCRIPT_task1"], marker=True, data="String", spans={1: (0, 10), 2: (5, 15)}),
        processes=(Process(key="p", state="failed"), Process(key="q", state="failed")),
    )
    sights = {"MARKER_exists", "DATA_correct", "EXECUTION_parallel"}
    assert labels_of(observation, asked=frozenset()) == ["SCRIPT_task1", "ERROR_runtime"]
    assert set(labels_of(observation, asked=frozenset(sights))) == {"SCRIPT_task1", "ERROR_runtime", *sights}
    nothing = Observation(trace=Trace(data="other", spans={1: (0, 10), 2: (10, 20)}))
    assert labels_of(nothing, asked=frozenset(sights)) == []


# ------------------------------------------------------------------ how it is judged

DONE = (Process(key="p", state="completed"),)


def finding(rule: str, message: str = "It cannot be.") -> Finding:
    """An error that refuses a file."""
    return Finding(level=Level.ERROR, rule=rule, message=message, remedy="Change it.", element_id="x")


def wrote(*lines: str, processes: tuple[Process, ...] = DONE, **fields: Any) -> Observation:
    """A run that wrote these lines."""
    return Observation(trace=Trace(lines=list(lines), exists=bool(lines)), processes=processes, **fields)


@pytest.mark.parametrize(
    "lines, outcome",
    [
        (["a", "b", "b"], Outcome.PASSED),
        (["b", "a", "b"], Outcome.PASSED),
        (["a", "b"], Outcome.FAILED),
        (["a", "a", "b"], Outcome.FAILED),
        (["a", "b", "b", "b"], Outcome.FAILED),
        (["a", "b", "b", "c"], Outcome.FAILED),
        ([], Outcome.FAILED),
    ],
)
def test_multiset(lines: list[str], outcome: Outcome) -> None:
    """The order of a trace does not count, how often a label is in it does."""
    assert judge(a_case(admitted=(("a", "b", "b"),)), wrote(*lines)).outcome is outcome


def test_several_admitted() -> None:
    """Where the standard admits several traces, any of them passes, and no other."""
    case = a_case(admitted=(("a",), ("a", "b")))
    outcomes = [judge(case, wrote(*lines)).outcome for lines in ("a", "ab", "b")]
    assert outcomes == [Outcome.PASSED, Outcome.PASSED, Outcome.FAILED]
    assert judge(case, wrote("b")).why == "the trace is b, but should be a or a, b"


def test_the_log_must_exist() -> None:
    """An empty trace passes where it is asked for, if the log was made: else nothing may have run at all."""
    case = a_case(admitted=((),))
    assert judge(case, wrote()).why == "the log was never made"
    assert judge(case, Observation(trace=Trace(exists=True), processes=DONE)).outcome is Outcome.PASSED


def test_late_lines() -> None:
    """The right trace is wrong if a part of it came too late."""
    result = judge(a_case(delay=2.5), wrote("SCRIPT_task1", late=("SCRIPT_task1",)))
    assert result.outcome is Outcome.FAILED
    assert result.why == "after the delay of 2.5 s it still wrote SCRIPT_task1"


@pytest.mark.parametrize(
    "processes, why",
    [
        ({"p": "waiting"}, "p is waiting, but should be completed"),
        ({}, "p is nothing, but should be completed"),
        ({"p": "completed", "q": "waiting"}, "q is waiting, but should be completed"),
        ({"p": "completed", "q": "terminated"}, "q is terminated, but should be completed"),
        ({"p": "completed", "q": "completed"}, ""),
    ],
)
def test_final_states(processes: Mapping[str, str], why: str) -> None:
    """The right trace is wrong if its process does not end as it should, or another does not complete."""
    stands = tuple(Process(key=key, state=state) for key, state in processes.items())
    result = judge(a_case(), wrote("SCRIPT_task1", processes=stands))
    assert (result.outcome, result.why) == (Outcome.FAILED if why else Outcome.PASSED, why)


def test_started_once() -> None:
    """A process that ran twice is wrong, however its instances ended."""
    result = judge(a_case(), wrote("SCRIPT_task1", processes=DONE * 2))
    assert result.why == "p is completed, completed, but should be completed"


@pytest.mark.parametrize("state, final", [("waiting", "waiting"), ("terminated", "terminated")])
def test_other_ends(state: str, final: str) -> None:
    """A case may ask for another end than completion."""
    observation = wrote("SCRIPT_task1", processes=(Process(key="p", state=state),))
    assert judge(a_case(final_state=final), observation).outcome is Outcome.PASSED
    assert judge(a_case(), observation).outcome is Outcome.FAILED


def test_named_errors() -> None:
    """An error is a label of the trace, which has to be the right one, and a state."""
    thrown = wrote("a", processes=(Process(key="p", state="error-event"),))
    failed = wrote("a", processes=(Process(key="p", state="failed", why="no flow"),))
    case = a_case(admitted=(("a", "ERROR_thrownErrorEvent"),), final_state="error-event")
    assert judge(case, thrown).outcome is Outcome.PASSED
    assert judge(case, failed).why == (
        "the trace is ERROR_runtime, a, but should be ERROR_thrownErrorEvent, a; "
        "p is failed, but should be error-event; no flow"
    )


def test_any_error() -> None:
    """A case that asks for an error of any kind takes a refusal and a failure, but not one that the model throws, and
    nothing may have been written before.
    """
    case = a_case(admitted=(("ERROR",),), final_state="rejected-or-failed")
    refused = Observation(trace=Trace(), refused=(finding("quantity"),))
    failed, thrown = (
        Observation(trace=Trace(exists=True), processes=(Process(key="p", state=state),))
        for state in ("failed", "error-event")
    )
    assert judge(case, refused).outcome is Outcome.PASSED
    assert judge(case, failed).outcome is Outcome.PASSED
    assert judge(case, thrown).outcome is Outcome.FAILED
    assert judge(case, wrote("a", processes=failed.processes)).outcome is Outcome.FAILED


def test_not_yet() -> None:
    """A file that is refused for nothing but elements that are not executed says nothing about the case; with any other
    error it fails, and says why.
    """
    unfinished = (finding("not-executed", "An x is not executed."), finding("not-executed", "A y is not executed."))
    result = judge(a_case(), Observation(trace=Trace(), refused=unfinished))
    assert (result.outcome, result.why) == (Outcome.NOT_YET, "A y is not executed. An x is not executed.")
    both = judge(a_case(), Observation(trace=Trace(), refused=(*unfinished, finding("broken"))))
    assert both.outcome is Outcome.FAILED
    assert "p is rejected, but should be completed" in both.why
    assert "[broken] 'x': It cannot be." in both.why


def test_whole_run(tmp_path: Path) -> None:
    """From the file to the outcome, right and wrong."""
    assert run(case_of(tmp_path, completing)).outcome is Outcome.PASSED
    assert run(case_of(tmp_path, waiting, final_state="waiting")).outcome is Outcome.PASSED
    assert run(case_of(tmp_path, waiting)).outcome is Outcome.FAILED
