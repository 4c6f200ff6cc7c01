"""What the machine executes and the runtime does not carry between instances: refused at registration."""

from __future__ import annotations

from collections.abc import Iterator

from trioflow.machine.behaviours.calling import Call
from trioflow.machine.behaviours.catching import Start
from trioflow.machine.program import NodeProgram, Program
from trioflow.model import Finding
from trioflow.model.findings import Level

__all__ = ["unwired"]


def unwired(program: Program) -> Iterator[Finding]:
    """A finding for each node that starts an instance: a call activity, a start event of the process with a trigger."""
    for node in program.nodes.values():
        refused = _what(node)
        if refused is not None:
            what, remedy = refused
            yield Finding.about(
                node.element,
                level=Level.ERROR,
                rule="not-executed",
                message=f"{what} is not executed by this version of trioflow.",
                remedy=remedy,
            )


def _what(node: NodeProgram) -> tuple[str, str] | None:
    if isinstance(node.behaviour, Call):
        return "A callActivity", "Model it as a sub-process, or start the other process in a handler."
    if isinstance(node.behaviour, Start):
        return "A start event with a trigger", "Start the instance from your program, at a none start event."
    return None
