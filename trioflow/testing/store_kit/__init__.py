"""The conformance kit of stores: what every adapter must do, as tests that run against a factory.

An adapter's author writes one class in a test module and runs it under pytest with pytest-trio
(``trio_mode = true``)::

    class TestMyStore(StoreContract):
        @pytest.fixture
        def make_store(self, store_clock):
            return lambda: MyStore(..., clock=store_clock)

``make_store`` returns a new handle each time, not opened, all over the *same* data, which is empty when a test begins.
``store_clock`` is the kit's clock: it stands still until a test moves it.
"""

from __future__ import annotations

from trioflow.testing.store_kit.commits import CommitContract
from trioflow.testing.store_kit.definitions import DefinitionContract
from trioflow.testing.store_kit.messages import MessageContract
from trioflow.testing.store_kit.ownership import OwnershipContract
from trioflow.testing.store_kit.support import Engine, MakeStore, ManualClock, after_item, message, new_item
from trioflow.testing.store_kit.thrown import ThrownContract
from trioflow.testing.store_kit.waits import WaitContract

__all__ = [
    "CommitContract",
    "DefinitionContract",
    "Engine",
    "MakeStore",
    "ManualClock",
    "MessageContract",
    "OwnershipContract",
    "StoreContract",
    "ThrownContract",
    "WaitContract",
    "after_item",
    "message",
    "new_item",
]


class StoreContract(
    OwnershipContract, CommitContract, DefinitionContract, WaitContract, MessageContract, ThrownContract
):
    """All of the port."""
