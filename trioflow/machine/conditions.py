"""Conditional events: which are looked at after a commit of data, and when they fire (clause 10.5.5).

A condition is evaluated when it is armed, and after each commit of data that writes a name which it reads; it fires
when it goes from false to true.  All that one commit touches see one snapshot and fire in the order of arming; its
last value is part of the wait, so a restart is no edge.  An activity that waits for its data is looked at too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trioflow.errors import ExpressionError
from trioflow.machine import associations, joins, waits
from trioflow.machine.state import ConditionWait, DataWait

if TYPE_CHECKING:
    from trioflow.machine.turn import Turn

__all__ = ["look"]


def look(turn: Turn) -> None:
    """Evaluate every condition that reads what was written; those that became true fire, as long as they are armed."""
    state = turn.state
    touched: dict[int, ConditionWait | DataWait] = {}
    for name in state.changed:
        touched.update(state.conditions.get(name, {}))
    changed = tuple(state.changed)
    state.changed.clear()
    seen = [(wait, _value(turn, wait)) for _, wait in sorted(touched.items())]
    for wait, value in seen:
        if wait.id not in state.waits:
            continue  # one before it ended what it was armed for
        if isinstance(wait, DataWait):
            plan = waits.data_of(turn.program, state, wait)
            associations.arrived(turn, state.tracks[wait.track], plan)
        elif isinstance(value, ExpressionError):
            node = waits.node_of(turn.program, state, wait)
            node.behaviour.failed_to_look(turn, node, wait, value)
        elif value is not wait.last:
            wait.last = value
            state.waits.touch(wait)
            if value:
                turn.occurred(wait, None)
    joins.reconsider(turn, changed)


def _value(turn: Turn, wait: ConditionWait | DataWait) -> bool | ExpressionError:
    if isinstance(wait, DataWait):
        return True
    condition = waits.condition_of(turn.program, turn.state, wait)
    try:
        return turn.decide(condition, waits.reads(turn.state, wait))
    except ExpressionError as error:
        return error
