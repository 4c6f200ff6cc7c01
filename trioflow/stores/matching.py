"""The rule by which messages and subscriptions find each other, in words that every adapter can index.

A subscription with a key wants that key.  One without is matched by name; if the message names a key or a business
key, that must be the business key of the subscription's instance.  A business key of the message is binding for both.
"""

from __future__ import annotations

import enum
from typing import Final

import orjson

from trioflow.checkpoint.records import Message, SubscriptionRow

__all__ = ["ANYONE", "Anyone", "addressee", "key_text", "matches"]


class Anyone(enum.Enum):
    """The one member stands for: whatever the business key is, and if there is none."""

    ANYONE = "anyone"


ANYONE: Final = Anyone.ANYONE


def key_text(business_key: str) -> str:
    """The business key as a message's key would be written: canonical JSON text."""
    return orjson.dumps(business_key).decode()


def addressee(key: str | None, business_key: str | None) -> str | Anyone | None:
    """The business key that a subscription *without* a key must have to match such a message; None: no one can."""
    if business_key is not None:
        return business_key
    if key is None:
        return ANYONE
    wanted = orjson.loads(key)
    return wanted if isinstance(wanted, str) else None


def matches(message: Message, row: SubscriptionRow) -> bool:
    """Whether the subscription may get the message; which of several does is a matter of their order."""
    if (message.tenant, message.name) != (row.tenant, row.name):
        return False
    if row.key is not None:
        return message.key == row.key and message.business_key in (None, row.business_key)
    wanted = addressee(message.key, message.business_key)
    return wanted is ANYONE or (wanted is not None and wanted == row.business_key)
