"""The track tasks of one instance: started, handed their next step, dismissed, cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import define

from trioflow.machine.state import TrackState
from trioflow.runtime.runners import Runner

if TYPE_CHECKING:
    from trioflow.machine.transition import Effect, Run
    from trioflow.runtime.host import Host

__all__ = ["Blocked", "TrackTasks"]


@define(eq=False)
class Blocked:
    """Effects that wait until the tasks that the same transition stopped have really ended."""

    stops: set[int]
    effects: Sequence[Effect]
    seq: int


class TrackTasks:
    """One task for each track that is executing something; ``busy`` counts the steps that have not reported."""

    __slots__ = ("_host", "_runners", "busy")

    def __init__(self, host: Host) -> None:
        self._host = host
        self._runners: dict[int, Runner] = {}
        self.busy = 0

    def start(self, run: Run) -> None:
        """Execute a step, in its track's task or in a new one.  A run that is not wanted any more is dropped."""
        host = self._host
        track = host.state.tracks.get(run.track)
        if host.is_lost or track is None or track.step != run.step or track.state is not TrackState.EXECUTING:
            return
        if host.shell.closing:
            return  # it stays executing in the state, and is entered when the instance is loaded next
        self.busy += 1
        runner = self._runners.get(run.track)
        if runner is not None and not runner.is_cancelled:
            runner.hand(run)
            return
        runner = self._runners[run.track] = Runner(host, run.track, run)
        assert host.nursery is not None
        host.nursery.start_soon(runner, name=f"{host.instance_id}:{track.node}")

    def stop(self, track_id: int) -> bool:
        """Cancel what the track runs; whether there is a task whose end can be waited for."""
        runner = self._runners.get(track_id)
        if runner is None:
            return False
        runner.cancel()
        return True

    def reported(self) -> None:
        """A step has reported."""
        self.busy -= 1

    def ended(self, runner: Runner) -> None:
        """A task has really ended."""
        if runner.busy:
            self.busy -= 1
        if self._runners.get(runner.track) is runner:
            del self._runners[runner.track]

    def dismiss_if_parked(self, track_id: int) -> None:
        """The task of a track that has no next step ends."""
        runner = self._runners.get(track_id)
        if runner is None or runner.busy:
            return
        track = self._host.state.tracks.get(track_id)
        if track is None or track.state is not TrackState.EXECUTING or self._host.shell.closing:
            runner.dismiss()

    def dismiss_idle(self) -> None:
        """No step starts any more: tasks that wait for their next one end."""
        for runner in list(self._runners.values()):
            if not runner.busy:
                runner.dismiss()

    def cancel_all(self) -> None:
        """Cancel whatever runs."""
        for runner in list(self._runners.values()):
            runner.cancel()

    def shielding(self) -> list[str]:
        """The nodes of tasks that were cancelled and have not ended."""
        return [runner.node for runner in self._runners.values() if runner.is_cancelled]
