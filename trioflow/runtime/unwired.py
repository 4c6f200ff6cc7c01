"""What the machine executes and the runtime does not carry between instances: refused at registration."""

from __future__ import annotations

from collections.abc import Iterator

from trioflow.machine.behaviours.calling import Call
from trioflow.machine.behaviours.messaging import Send
from trioflow.machine.behaviours.throwing import MessageAction, SignalAction, Throw
from trioflow.machine.program import Program
from trioflow.machine.triggers import SignalTrigger
from trioflow.model import Finding
from trioflow.model.findings import Level

__all__ = ["unwired"]


def unwired(program: Program) -> Iterator[Finding]:
    """A finding for each node that sends something to other instances, or waits for a signal."""
    for node in program.nodes.values():
        behaviour = node.behaviour
        throws = isinstance(behaviour, Throw) and any(
            isinstance(action, SignalAction | MessageAction) for action in behaviour.actions
        )
        throws = throws or isinstance(behaviour, Send | Call)
        if throws or any(isinstance(trigger, SignalTrigger) for trigger in behaviour.plan.triggers):
            yield Finding.about(
                node.element,
                level=Level.ERROR,
                rule="not-executed",
                message="Sending between instances is not executed by this version of trioflow.",
                remedy="Send messages from the program.",
            )
