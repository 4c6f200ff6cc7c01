"""Track tasks: each executes the steps of one track, one after the other, and reports.

A task stays with its track and is handed its next step; it ends when the track parks or ends.  All that user code can
do (raise, return rubbish, be cancelled) becomes an event here; only what must stop the program passes.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import trio

from trioflow.errors import BpmnError, EngineClosed, ExpressionError, InvalidRequest
from trioflow.machine.behaviours.tasks import ScriptBehaviour
from trioflow.machine.data import ScopeView
from trioflow.machine.events import ActivityCompleted, ActivityFailed, ErrorThrown, Failure, Report
from trioflow.machine.program import NodeProgram
from trioflow.machine.state import IncidentKind, Track
from trioflow.machine.transition import Run
from trioflow.runtime.handlers import Handler
from trioflow.runtime.parking import Berth
from trioflow.runtime.shell import LOGGER
from trioflow.runtime.work import Work
from trioflow.values.display import shown

if TYPE_CHECKING:
    from trioflow.expressions import Script
    from trioflow.runtime.host import Host

__all__ = ["Runner"]


class Runner:
    """The task of one track.  ``busy``: it executes a step whose report has not been applied yet."""

    __slots__ = ("_berth", "_host", "_next", "_scope", "busy", "node", "track")

    def __init__(self, host: Host, track: int, run: Run) -> None:
        self.track = track
        self.node = host.state.tracks[track].node
        self.busy = True
        self._host = host
        self._next: Run | None = run
        self._scope = trio.CancelScope()
        self._berth = Berth()

    async def __call__(self) -> None:
        """Execute steps until there is no next one; then say that the task has ended."""
        try:
            with self._scope:
                while (run := self._next) is not None:
                    report = await self._execute(run)
                    self.busy = False
                    self._next = None
                    self._host.report(report)
                    if report is None or self._host.state.is_pending:
                        return  # the owner is in a long turn: a task that waits for it is only in the way
                    await self._berth.sleep()
        except Exception as error:
            if not self._scope.cancel_called:
                raise
            # What a cancelled step raised while it cleaned up: its outcome is not wanted any more.
            LOGGER.warning("a cancelled step of %s raised %r", self._host.instance_id, error)
        finally:
            self._host.runner_ended(self)

    def hand(self, run: Run) -> None:
        """Give the task its next step."""
        self.busy = True
        self._wake(run)

    def dismiss(self) -> None:
        """There is no next step: the task ends."""
        self._wake(None)

    def cancel(self) -> None:
        """Cancel the step; what it still returns is dropped."""
        self._scope.cancel()

    @property
    def is_cancelled(self) -> bool:
        """Whether it was told to stop."""
        return self._scope.cancel_called

    def _wake(self, run: Run | None) -> None:
        self._next = run
        self._berth.wake()

    # -------------------------------------------------------------- one step

    async def _execute(self, run: Run) -> Report | None:
        host = self._host
        track = host.state.tracks.get(run.track)
        if track is None or track.step != run.step:
            return None
        node = host.program.nodes[track.node]
        attempt = track.attempt
        try:
            outputs = await self._call(track, node)
        except BpmnError as error:
            return _thrown(run, error)
        except _NoHandler as error:
            return ActivityFailed(track=run.track, step=run.step, failure=_failure(IncidentKind.MISSING_HANDLER, error))
        except Exception as error:
            business = _only_bpmn_error(error)
            if business is not None:
                return _thrown(run, business)
            if self._scope.cancel_called:
                raise
            if self._host.shell.closing and isinstance(_alone(error), EngineClosed):
                return None  # refused because the engine closes: it has not failed, and runs again later
            return self._failed(run, node, error, attempt)
        return ActivityCompleted(run.track, run.step, outputs)

    async def _call(self, track: Track, node: NodeProgram) -> Mapping[str, Any]:
        behaviour = node.behaviour
        if isinstance(behaviour, ScriptBehaviour):
            return await self._script(behaviour.script, track, node)
        assert behaviour.handler is not None
        shell = self._host.shell
        handler = shell.handlers.get(behaviour.handler)
        if handler is None:
            raise _NoHandler(
                f"{node.label} calls the handler {behaviour.handler!r}, which this engine does not have; "
                f"open the engine with it, then retry"
            )
        work = Work(self._host.state, track, shell.codec, own_data=node.has_inputs)
        if handler.inputs is not None:
            work.settle(shell.codec.structure(dict(work.data), handler.inputs))
        if handler.is_async and handler.limiter is None:
            outputs = await handler.function(work)
        else:
            outputs = await self._handle(handler, work)
        return outputs if type(outputs) is dict else _checked(outputs, f"the handler {handler.name!r}", node)

    async def _script(self, script: Script, track: Track, node: NodeProgram) -> Mapping[str, Any]:
        state = self._host.state
        assigned = script.run(ScopeView(state, track.scope), state.header.now)
        if inspect.isawaitable(assigned):
            assigned = await assigned
        return _checked(assigned, f"the script in {script.language}", node)

    async def _handle(self, handler: Handler, work: Work) -> Any:
        if handler.limiter is None:
            return await self._run(handler, work)
        async with handler.limiter:
            return await self._run(handler, work)

    async def _run(self, handler: Handler, work: Work) -> Any:
        if handler.is_async:
            return await handler.function(work)
        if handler.inline:
            return handler.function(work)
        shell = self._host.shell
        work.freeze()
        with shell.clock.held():
            return await trio.to_thread.run_sync(handler.function, work, limiter=shell.threads, abandon_on_cancel=True)

    def _failed(self, run: Run, node: NodeProgram, error: Exception, attempt: int) -> ActivityFailed:
        if isinstance(node.behaviour, ScriptBehaviour):
            return ActivityFailed(track=run.track, step=run.step, failure=_script_failure(error, node))
        handler = self._host.shell.handlers.get(node.behaviour.handler or "")
        retry = (handler.retry if handler is not None else None) or self._host.shell.retry
        failure = _failure(IncidentKind.HANDLER_FAILURE, error, where=node.label)
        return ActivityFailed(track=run.track, step=run.step, failure=failure, retry_in=retry.after(attempt))


class _NoHandler(InvalidRequest):
    """The engine lacks the handler."""


def _checked(outputs: Any, whose: str, node: NodeProgram) -> Mapping[str, Any]:
    if outputs is None:
        return {}
    if isinstance(outputs, Mapping):
        return outputs
    raise InvalidRequest(
        f"{whose} of {node.label} returned {shown(outputs)} ({type(outputs).__name__}); "
        f"return a dict of outputs by name, or None"
    )


def _thrown(run: Run, error: BpmnError) -> ErrorThrown:
    return ErrorThrown(track=run.track, step=run.step, code=error.code, message=str(error), variables=error.variables)


def _only_bpmn_error(error: BaseException) -> BpmnError | None:
    """The one BPMN error that an exception group consists of, at any depth."""
    alone = _alone(error)
    return alone if isinstance(alone, BpmnError) else None


def _alone(error: BaseException) -> BaseException:
    """What exception groups hold, if that is one exception alone."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _script_failure(error: Exception, node: NodeProgram) -> Failure:
    """A script is never tried again by itself: the same text with the same names would fail again."""
    alone = _alone(error)
    where = "" if isinstance(alone, ExpressionError) else node.label  # whatever else an engine raises needs its type
    return _failure(IncidentKind.SCRIPT, alone, where=where)


def _failure(kind: IncidentKind, error: BaseException, *, where: str = "") -> Failure:
    message = f"{type(error).__name__}: {error}" if where else str(error)
    return Failure(kind=kind, message=message, causes=_causes(error))


def _causes(error: BaseException) -> tuple[str, ...]:
    """The traceback of the error and of what caused it, outermost first; bounded, because it is stored."""
    _skip_our_frames(error)
    text = "".join(traceback.format_exception(error, limit=-20, chain=True))
    return (text[-16_000:],)


def _skip_our_frames(error: BaseException) -> None:
    """Have the traceback begin where the handler does: what called it is of no use to who wrote it."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_globals.get("__name__", "").partition(".")[0] in _CALLERS:
        frame = frame.tb_next
    if frame is not None:
        error.__traceback__ = frame


_CALLERS = frozenset({"trioflow", "trio", "outcome"})
