"""The end of the demo: what was done once, what was repeated, and whether that is what had to come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen
from rich.console import Console
from rich.text import Text

from trioflow.cli.demo.coordinator import Ending
from trioflow.cli.demo.ledger import Entry
from trioflow.cli.demo.order import INSTANCE, KILLED_IN, SECONDS, VARIABLES, receipt
from trioflow.cli.output import plain_table

__all__ = ["Step", "print_report", "problems", "steps_of"]

REACHED = (
    ("activity-completed", "check-order"),
    ("message-received", "picked-up"),
    ("timer-fired", "return-window"),
)
"""What must have happened besides the steps: the task, the message, the timer."""


@frozen(kw_only=True)
class Step:
    """One step as the ledger knows it: the keys of its runs, in order, and the processes that they ran in."""

    id: str
    keys: tuple[str, ...]
    pids: tuple[int, ...]


def steps_of(entries: Sequence[Entry]) -> tuple[Step, ...]:
    """The steps of a ledger, in the order in which they first ran."""
    runs: dict[str, list[Entry]] = {}
    for entry in entries:
        runs.setdefault(entry.step, []).append(entry)
    return tuple(
        Step(id=step, keys=tuple(each.key for each in found), pids=tuple(each.pid for each in found))
        for step, found in runs.items()
    )


def problems(steps: Sequence[Step], ending: Ending) -> Iterator[str]:
    """What is not as it must be; nothing, if all is well."""
    if ending.status != "completed":
        yield f"the order ended {ending.status}"
    runs = {step.id: len(step.keys) for step in steps}
    for step in SECONDS:
        wanted = 2 if step == KILLED_IN else 1
        if runs.get(step, 0) != wanted:
            yield f"the step {step} ran {runs.get(step, 0)} times, and not {wanted}"
    for found in steps:
        if len(set(found.keys)) > 1:
            yield f"the step {found.id} had several keys: {', '.join(found.keys)}"
    for kind, node in REACHED:
        if ending.facts.count((kind, node)) != 1:
            yield f"there are {ending.facts.count((kind, node))} facts {kind} of {node}, and not 1"
    wanted_variables = {
        **VARIABLES,
        "receipt": receipt(f"{INSTANCE}/{KILLED_IN}/1"),
        "checked_by": "ada",
        "parcel": "p-77",
    }
    if dict(ending.variables) != wanted_variables:
        yield f"the variables are {dict(ending.variables)}, and not {wanted_variables}"


def print_report(out: Console, steps: Sequence[Step], names: Mapping[str, str]) -> None:
    """The table of what ran how often under which key, and the reason in words."""
    out.print()
    out.print(Text("== What was done once, and what was repeated", style="bold"))
    table = plain_table("step", "runs", "idempotency key", "")
    for step in steps:
        repeated = len(step.keys) > 1
        table.add_row(
            names.get(step.id, step.id),
            str(len(step.keys)),
            step.keys[0],
            Text("repeated, same key" if repeated else "once", style="yellow" if repeated else "green"),
        )
    out.print(table)
    for step in steps:
        if len(step.keys) > 1:
            out.print(_why(names.get(step.id, step.id), step))


def _why(name: str, step: Step) -> str:
    return (
        f'"{name}" was repeated because process {step.pids[0]} was killed while it ran: whether the bank had the '
        f"charge already, nobody could know. Both runs gave the bank the same key, so it knows the second as the same "
        f"charge. Nothing that was done and stored ran again."
    )
