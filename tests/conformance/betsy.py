"""Runs a case of the conformance suite in virtual time, and judges what came out of it."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain

import trio
from attrs import frozen
from trio.testing import MockClock, wait_all_tasks_blocked

import trioflow
from tests.conformance.cases import Case
from tests.conformance.dialect import Trace, languages
from trioflow.checkpoint.records import IncidentRow, InstanceHead
from trioflow.errors import DefinitionRefused, InvalidRequest
from trioflow.facts import Status
from trioflow.machine.state import IncidentKind
from trioflow.model import Finding, errors
from trioflow.testing import VirtualClock

__all__ = ["Observation", "Outcome", "Process", "Result", "judge", "labels_of", "observe", "run"]

AFTERWARDS = 120.0
"""Seconds in which nothing more may happen: longer than any timer of the suite."""


class Outcome(enum.Enum):
    """What became of a case."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_YET = "not executable yet"


@frozen(kw_only=True)
class Process:
    """How an instance stands at the end: ``state`` in the words of the suite, ``why`` for what it does not say."""

    key: str
    state: str
    why: str = ""


@frozen(kw_only=True)
class Observation:
    """What came out of a run.

    ``refused``: the errors for which the file was not deployed.  ``late``: the lines of the log that were written after
    the delay of the case.
    """

    trace: Trace
    refused: tuple[Finding, ...] = ()
    processes: tuple[Process, ...] = ()
    late: tuple[str, ...] = ()


@frozen(kw_only=True)
class Result:
    """What became of a case, and why."""

    case: Case
    outcome: Outcome
    why: str = ""


def run(case: Case) -> Result:
    """Run the case under a clock of its own and judge it."""
    return judge(case, trio.run(observe, case, clock=MockClock(autojump_threshold=0)))


# ------------------------------------------------------------------ running


async def observe(case: Case) -> Observation:
    """Deploy the file, start what is to be started, wait, and look; needs a ``MockClock`` that jumps."""
    trace = Trace()
    async with trioflow.open_engine(clock=VirtualClock(), languages=languages(trace)) as engine:
        try:
            await engine.deploy(case.file)
        except DefinitionRefused as refused:
            return Observation(trace=trace, refused=errors(refused.findings))
        unstarted = await _start(engine, case)
        await trio.sleep(case.delay)
        await wait_all_tasks_blocked()
        in_time = len(trace.lines)
        await trio.sleep(AFTERWARDS)
        await wait_all_tasks_blocked()
        return Observation(
            trace=trace, processes=(*unstarted, *await _processes(engine)), late=tuple(trace.lines[in_time:])
        )


async def _start(engine: trioflow.Engine, case: Case) -> list[Process]:
    """Start one after the other, each when the one before has come to rest; those that could not be started."""
    refused: list[Process] = []
    for start in case.starts:
        try:
            await engine.start(start.process, start.variables)
        except InvalidRequest as error:
            refused.append(Process(key=start.process, state="failed", why=str(error)))
        await wait_all_tasks_blocked()
    return refused


async def _processes(engine: trioflow.Engine) -> list[Process]:
    found: list[Process] = []
    for head in await engine.instances():
        incidents = await engine.incidents.query(instance_id=head.instance_id)
        why = head.failure or "; ".join(sorted({row.message for row in incidents}))
        found.append(Process(key=head.process_key, state=_state(head, incidents), why=why))
    return found


_ENDS: Mapping[Status, str] = {
    Status.COMPLETED: "completed",
    Status.TERMINATED: "terminated",
    Status.FAILED: "error-event",
}


def _state(head: InstanceHead, incidents: Iterable[IncidentRow]) -> str:
    """In the words of the suite, for which a stuck join waits; there is none for what a bug of the engine stopped."""
    if head.failure:
        return "broken"
    fails = any(row.incident_kind != IncidentKind.STUCK for row in incidents)
    return _ENDS.get(head.status) or ("failed" if fails else "waiting")


# ------------------------------------------------------------------ judging

_REFUSED = "ERROR_deployment"
_LABELS = {"failed": "ERROR_runtime", "error-event": "ERROR_thrownErrorEvent"}
_ANY = "ERROR"
"""Asks for a refusal or a failure, whichever."""


def judge(case: Case, observation: Observation) -> Result:
    """Compare what came out with what the case asks for."""
    refused = observation.refused
    if refused and all(finding.rule == "not-executed" for finding in refused):
        return Result(case=case, outcome=Outcome.NOT_YET, why=" ".join(sorted({each.message for each in refused})))
    faults = [*_faults_of_trace(case, observation), *_faults_of_states(case, observation)]
    if not faults:
        return Result(case=case, outcome=Outcome.PASSED)
    return Result(case=case, outcome=Outcome.FAILED, why="; ".join([*faults, *_reasons(observation)]))


def _faults_of_trace(case: Case, observation: Observation) -> list[str]:
    faults = []
    labels = labels_of(observation, asked=frozenset(chain.from_iterable(case.admitted)))
    if Counter(labels) not in map(Counter, case.admitted):
        admitted = " or ".join(map(_listed, case.admitted))
        faults.append(f"the trace is {_listed(labels)}, but should be {admitted}")
    if observation.late:
        faults.append(f"after the delay of {case.delay:g} s it still wrote {_listed(observation.late)}")
    if not (observation.refused or observation.trace.exists or labels):
        faults.append("the log was never made")
    return faults


def labels_of(observation: Observation, *, asked: frozenset[str]) -> list[str]:
    """The trace as labels: the lines, what is asked for of the rest, and a label for each kind of failure."""
    trace = observation.trace
    sights = {
        "MARKER_exists": trace.marker,
        "DATA_correct": trace.data == "String",
        "EXECUTION_parallel": trace.is_parallel(),
    }
    failures = {_LABELS[process.state] for process in observation.processes if process.state in _LABELS}
    if observation.refused:
        failures.add(_REFUSED)
    if _ANY in asked:
        failures = {_ANY if label in {_REFUSED, "ERROR_runtime"} else label for label in failures}
    return [*trace.lines, *(label for label, seen in sights.items() if seen and label in asked), *sorted(failures)]


def _faults_of_states(case: Case, observation: Observation) -> list[str]:
    """The process of the case must end as the review says, once; any other that runs with it completes."""
    allowed = case.final_state.split("-or-")
    own = [process.state for process in observation.processes if process.key == case.process]
    if observation.refused:
        own = ["rejected"]
    faults = []
    if len(own) != 1 or own[0] not in allowed:
        faults.append(f"{case.process} is {_listed(own)}, but should be {' or '.join(allowed)}")
    faults += [
        f"{process.key} is {process.state}, but should be completed"
        for process in observation.processes
        if process.key != case.process and process.state != "completed"
    ]
    return faults


def _reasons(observation: Observation) -> list[str]:
    """What the engine said of it itself."""
    said = [f"[{finding.rule}] {finding.element_id!r}: {finding.message}" for finding in observation.refused]
    return said + [process.why for process in observation.processes if process.why]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words)) or "nothing"
