"""What the program does when a task runs: handlers, their retry policies, and the registry that holds them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeVar, overload

import trio
from attrs import define, field, frozen

from trioflow.errors import InvalidRequest

__all__ = ["Handler", "Handlers", "Retry"]

F = TypeVar("F", bound=Callable[..., Any])


@frozen(kw_only=True)
class Retry:
    """How often a failed step runs again, and after how long.

    ``attempts`` counts all runs, the first included (a repetition after a crash keeps its number).  The n-th
    retry waits ``delay * backoff**(n-1)`` seconds, at most ``max_delay``.  When all are spent, the failure
    becomes an incident.
    """

    attempts: int = 1
    delay: float = 1.0
    backoff: float = 2.0
    max_delay: float = 3600.0

    def __attrs_post_init__(self) -> None:
        if self.attempts < 1 or self.delay < 0 or self.backoff < 1 or self.max_delay < 0:
            raise InvalidRequest(f"{self} cannot be meant: attempts and backoff start at 1, delays at 0 seconds")

    def after(self, attempt: int) -> timedelta | None:
        """How long to wait after the failure of that attempt; None: no more."""
        if attempt >= self.attempts:
            return None
        try:
            seconds = self.delay * self.backoff ** (attempt - 1)
        except OverflowError:
            seconds = self.max_delay
        return timedelta(seconds=min(seconds, self.max_delay))


@define(eq=False, kw_only=True)
class Handler:
    """One handler: the function and how it is called.

    ``inputs``: an attrs class that the inputs are structured into.  ``inline``: a plain function that runs in the
    event loop (short, never blocking).  ``limiter`` bounds how many of it run at once.
    """

    name: str
    function: Callable[..., Any]
    retry: Retry | None = None
    inputs: type | None = None
    inline: bool = False
    limiter: trio.CapacityLimiter | None = None
    is_async: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        call = getattr(self.function, "__call__", None)  # noqa: B004 - an object may have an async __call__
        self.is_async = inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)


class Handlers(Mapping[str, Handler]):
    """Handlers by name.

    Example::

        handlers = trioflow.Handlers()


        @handlers.task("charge-card", retry=trioflow.Retry(attempts=3))
        async def charge(work: trioflow.Work) -> dict: ...

    An ``async def`` runs in a task of its instance; a plain ``def`` in a worker thread, or with ``inline=True`` in
    the event loop.  It is called with one ``Work`` and returns a dict of outputs, or None.
    """

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    @overload
    def task(
        self,
        name: str,
        *,
        retry: Retry | None = None,
        inputs: type | None = None,
        inline: bool = False,
        max_concurrent: int | None = None,
    ) -> Callable[[F], F]: ...

    @overload
    def task(
        self,
        name: str,
        function: F,
        *,
        retry: Retry | None = None,
        inputs: type | None = None,
        inline: bool = False,
        max_concurrent: int | None = None,
    ) -> F: ...

    def task(
        self,
        name: str,
        function: Any = None,
        *,
        retry: Retry | None = None,
        inputs: type | None = None,
        inline: bool = False,
        max_concurrent: int | None = None,
    ) -> Any:
        """Register the handler of that name, as a decorator or directly.

        Raises ``InvalidRequest`` if the name is taken, or if the options contradict the function.
        """
        if function is None:
            return lambda found: self.task(
                name, found, retry=retry, inputs=inputs, inline=inline, max_concurrent=max_concurrent
            )
        if name in self._handlers:
            raise InvalidRequest(f"there is a handler {name!r} already: give one of them another name")
        if max_concurrent is not None and max_concurrent < 1:
            raise InvalidRequest(f"handler {name!r}: max_concurrent is {max_concurrent}, but must be at least 1")
        handler = Handler(
            name=name,
            function=function,
            retry=retry,
            inputs=inputs,
            inline=inline,
            limiter=None if max_concurrent is None else trio.CapacityLimiter(max_concurrent),
        )
        if inline and handler.is_async:
            raise InvalidRequest(f"handler {name!r} is async already: leave inline=True away")
        self._handlers[name] = handler
        return function

    def __getitem__(self, name: str) -> Handler:
        return self._handlers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)

    def __repr__(self) -> str:
        return f"<Handlers {', '.join(self._handlers) or 'none'}>"
