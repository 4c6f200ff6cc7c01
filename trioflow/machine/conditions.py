"""Conditional events: which are looked at after a commit of data, and when they fire (clause 10.5.5).

A condition is evaluated when it is armed, and after each commit of data that writes a name which it reads; it fires
when it goes from false to true.  All that one commit touches see one snapshot and fire in the order of arming; its
last value is part of the wait, so a restart is no edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trioflow.errors import ExpressionError
from trioflow.machine import waits
from trioflow.machine.state import ConditionWait

if TYPE_CHECKING:
    from trioflow.machine.turn import Turn

__all__ = ["look"]


def look(turn: Turn) -> None:
    """Evaluate every condition that reads what was written; those that became true fire, as long as they are armed."""
    state = turn.state
    touched: dict[int, ConditionWait] = {}
    for name in state.changed:
        touched.update(state.conditions.get(name, {}))
    state.changed.clear()
    seen = [(wait, _value(turn, wait)) for _, wait in sorted(touched.items())]
    for wait, value in seen:
        if wait.id not in state.waits:
            continue  # one before it ended what it was armed for
        if isinstance(value, ExpressionError):
            node = waits.node_of(turn.program, state, wait)
            node.behaviour.failed_to_look(turn, node, wait, value)
        elif value is not wait.last:
            wait.last = value
            state.waits.touch(wait)
            if value:
                turn.occurred(wait, None)


def _value(turn: Turn, wait: ConditionWait) -> bool | ExpressionError:
    condition = waits.condition_of(turn.program, turn.state, wait)
    try:
        return turn.decide(condition, waits.reads(turn.state, wait))
    except ExpressionError as error:
        return error
