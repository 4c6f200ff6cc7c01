"""What a timer event waits for: its plan, made when the definition is compiled, and armed when a token arrives."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from attrs import frozen

from trioflow.errors import ExpressionError, InvalidRequest
from trioflow.model import CatchEvent, Expression, TimerEventDefinition
from trioflow.values import (
    Firing,
    TimerKind,
    Value,
    first_firing,
    parse_time_cycle,
    parse_time_date,
    parse_time_duration,
    parse_zone,
)

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.program import Evaluable

__all__ = ["TimerPlan"]


@frozen(kw_only=True)
class TimerPlan:
    """A date, a duration or a cycle: a literal (``literal``) or an expression, evaluated once, when it is armed."""

    kind: TimerKind
    text: str
    literal: Value
    expression: Evaluable | None
    zone: tzinfo

    @classmethod
    def compile(cls, compilation: Compilation, event: CatchEvent, definition: TimerEventDefinition) -> TimerPlan:
        """The plan of a timer event definition; what is wrong with it becomes a finding."""
        kind, expression = _only_one(compilation, event, definition)
        zone = _zone(compilation, event, definition)
        text = expression.text.strip()
        try:
            literal = _literal(kind, text, zone)
        except InvalidRequest as error:
            compilation.fault(event, "timer", f"its timer cannot be used: {error}.", "Correct the timer's text.")
            literal = _NOTHING.text
        compiled = None if literal is not None else compilation.expression(event, expression)
        return cls(kind=kind, text=text, literal=literal, expression=compiled, zone=zone)

    def arm(self, names: Mapping[str, Value], now: datetime) -> Firing:
        """The first firing of a timer that is armed now; an ``ExpressionError`` says what its expression gave."""
        value = self.literal if self.expression is None else self.expression.evaluate(names, now)
        try:
            firing = first_firing(self.kind, value, now=now, zone=self.zone)
        except (InvalidRequest, OverflowError) as error:
            raise ExpressionError(f"the timer {self.text!r} cannot be armed: {error}") from error
        if firing is None:
            raise ExpressionError(f"the timer {self.text!r} cannot be armed: all of its cycle is over")
        return firing


_NOTHING = Expression(text="PT0S")


def _only_one(
    compilation: Compilation, event: CatchEvent, definition: TimerEventDefinition
) -> tuple[TimerKind, Expression]:
    kinds: tuple[tuple[TimerKind, Expression | None], ...] = (
        ("date", definition.time_date),
        ("duration", definition.time_duration),
        ("cycle", definition.time_cycle),
    )
    given = [(kind, expression) for kind, expression in kinds if expression is not None]
    if len(given) == 1:
        return given[0]
    names = " and ".join(kind for kind, _ in given) or "none of them"
    compilation.fault(
        event, "timer", f"its timer has {names}.", "Give it exactly one of timeDate, timeDuration and timeCycle."
    )
    return "duration", _NOTHING


def _zone(compilation: Compilation, event: CatchEvent, definition: TimerEventDefinition) -> tzinfo:
    name = definition.extensions.own("timeZone")
    if name is None:
        return UTC
    try:
        return parse_zone(name)
    except InvalidRequest as error:
        compilation.fault(event, "timer", f"its time zone cannot be used: {error}.", "Write an IANA name or an offset.")
        return UTC


def _literal(kind: TimerKind, text: str, zone: tzinfo) -> Value:
    """What a literal means; None: the text is none, and so an expression."""
    if kind == "date":
        return parse_time_date(text, zone)
    if kind == "duration":
        return parse_time_duration(text)
    return parse_time_cycle(text, zone)
