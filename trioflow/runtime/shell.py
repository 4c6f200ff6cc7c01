"""What all instances of one engine share."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import trio
from attrs import define, field

from trioflow.checkpoint.documents import Documents
from trioflow.runtime.handlers import Handler, Retry
from trioflow.runtime.observers import Observers
from trioflow.runtime.watchers import Watchers
from trioflow.stores.clock import Clock
from trioflow.stores.port import Owner, Store
from trioflow.values import ValueCodec

if TYPE_CHECKING:
    from trioflow.runtime.committer import Committer
    from trioflow.runtime.recovery import Recovery
    from trioflow.runtime.residents import Residents
    from trioflow.runtime.timing import Timers

__all__ = ["LOGGER", "Shell"]

LOGGER = logging.getLogger("trioflow")


@define(eq=False, kw_only=True)
class Shell:
    """The parts of an engine, for each other and for its instances.

    ``closing``: the engine shuts down; no step starts any more.  ``call_limit``: how many acts of callers may wait
    at one instance before the next caller waits.
    """

    store: Store
    owner: Owner
    codec: ValueCodec
    documents: Documents
    handlers: Mapping[str, Handler]
    retry: Retry
    threads: trio.CapacityLimiter
    clock: Clock
    observers: Observers = field(factory=Observers)
    watchers: Watchers = field(factory=Watchers)
    nursery: trio.Nursery = field(init=False)
    committer: Committer = field(init=False)
    residents: Residents = field(init=False)
    timers: Timers = field(init=False)
    recovery: Recovery = field(init=False)
    is_serving: bool = False
    closing: bool = False
    call_limit: int = 64
    _commits: Iterator[int] = field(factory=lambda: itertools.count(1))

    def assemble(
        self,
        *,
        nursery: trio.Nursery,
        committer: Committer,
        residents: Residents,
        timers: Timers,
        recovery: Recovery,
    ) -> None:
        """Put in the parts that need the shell themselves."""
        self.nursery = nursery
        self.committer = committer
        self.residents = residents
        self.timers = timers
        self.recovery = recovery
        self.is_serving = True

    def commit_id(self) -> str:
        """A new commit id: unique over all engines, because an incarnation is."""
        return f"{self.owner.incarnation}.{self.owner.engine_id}.{next(self._commits)}"
