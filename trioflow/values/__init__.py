"""The value model: what instance data can hold, how it is addressed, written down and timed.

A floor without Trio, clock or randomness (``datetime`` appears here as a type and as arithmetic only).
"""

from __future__ import annotations

from trioflow.values._kinds import MAX_DEPTH, MAX_PARTS, Record, Value
from trioflow.values._registry import value_type
from trioflow.values.codec import ValueCodec
from trioflow.values.durations import Duration
from trioflow.values.moments import at_local, format_moment, parse_moment, parse_zone
from trioflow.values.paths import Path
from trioflow.values.timers import (
    CronCycle,
    Firing,
    RepeatingInterval,
    TimerKind,
    first_firing,
    next_firing,
    parse_time_cycle,
    parse_time_date,
    parse_time_duration,
)

__all__ = [
    "MAX_DEPTH",
    "MAX_PARTS",
    "CronCycle",
    "Duration",
    "Firing",
    "Path",
    "Record",
    "RepeatingInterval",
    "TimerKind",
    "Value",
    "ValueCodec",
    "at_local",
    "first_firing",
    "format_moment",
    "next_firing",
    "parse_moment",
    "parse_time_cycle",
    "parse_time_date",
    "parse_time_duration",
    "parse_zone",
    "value_type",
]
