"""An instance as callers see it: a handle that is good wherever the instance is, in memory or in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import frozen

from trioflow.errors import EngineClosed, InstanceFailed, InstanceNotFound, InstanceStalled
from trioflow.facts import Status
from trioflow.machine.derive import derive
from trioflow.machine.events import Cancel, Event
from trioflow.machine.explain import Explanation, Token, explain, tokens
from trioflow.machine.program import Program
from trioflow.machine.state import Incident, State
from trioflow.runtime.acts import Act, Reply
from trioflow.runtime.adhoc import AdHoc
from trioflow.values import Value

if TYPE_CHECKING:
    from trioflow.runtime.definitions import Programs
    from trioflow.runtime.shell import Shell

__all__ = ["Instance", "Outcome"]

T = TypeVar("T")


@frozen(kw_only=True)
class Outcome:
    """How an instance ended: its status, why (for a terminated one), and the variables of its root scope."""

    instance_id: str
    status: Status
    variables: dict[str, Value]
    reason: str = ""


class Instance:
    """A handle on one process instance.  ``created`` is False where ``start`` found that it had been started before.

    Every method takes its answer at a quiescent point and returns when what it shows is stored.
    """

    def __init__(self, shell: Shell, programs: Programs, instance_id: str, *, created: bool = True) -> None:
        self._shell = shell
        self._programs = programs
        self.id = instance_id
        self.created = created

    def __repr__(self) -> str:
        return f"<Instance {self.id}>"

    async def status(self) -> Status:
        """The status, from ``active`` to the terminal ones."""
        return await self._ask(lambda _, state: state.header.status)

    async def variables(self) -> dict[str, Value]:
        """The variables of the root scope, as copies."""
        return await self._ask(lambda _, state: self._root(state))

    async def tokens(self) -> tuple[Token, ...]:
        """Where its tokens are."""
        return await self._ask(tokens)

    async def explain(self) -> tuple[Explanation, ...]:
        """Why it is not over: what each token waits for, which flow a join misses, who can still bring it."""
        return await self._ask(explain)

    async def wait(self, *, through_incidents: bool = False) -> Outcome:
        """Wait for the end.  Cancelling gives up the waiting, not the instance.

        Raises ``InstanceFailed`` if it ended *failed*, and ``InstanceStalled`` with the incidents when nothing but an
        operator can move it (``through_incidents=True`` waits on), ``EngineClosed`` when the engine closes first.
        """
        state = await self._final()
        while not state.is_terminal:
            if not through_incidents:
                raise _stalled(self.id, tuple(state.open_incidents()))
            state = await self._final(stalled_too=False)
        outcome = Outcome(
            instance_id=self.id, status=state.status, variables=self._root(state), reason=state.header.reason
        )
        if outcome.status is Status.FAILED:
            raise InstanceFailed(f"instance {self.id!r} failed: {outcome.reason}")
        return outcome

    async def cancel(self, reason: str = "") -> Outcome:
        """End the instance as *terminated*; returns when its running steps have ended and the status is stored."""
        await self._act(Cancel(reason=reason))
        return await self.wait()

    @property
    def adhoc(self) -> AdHoc:
        """Its ad-hoc sub-processes that leave the choice of activities to people and programs."""
        return AdHoc(self._ask, self._act)

    # -------------------------------------------------------------- how

    async def _act(self, event: Event) -> Any:
        return await self._shell.residents.call(self.id, Act(event, reply=Reply()))

    async def _ask(self, query: Callable[[Program, State], T]) -> T:
        if self._shell.residents.host(self.id) is not None:
            try:
                return await self._shell.residents.call(self.id, Act(query=query, reply=Reply()))  # type: ignore[return-value]
            except (InstanceNotFound, EngineClosed):
                pass  # it ended or parked while the question was on its way: the store knows
        loaded = await self._shell.store.load(self.id)
        if loaded is None:
            raise InstanceNotFound(f"there is no instance {self.id!r}")
        program = await self._programs.version(loaded.head.process_key, loaded.head.version)
        state = self._shell.documents.fold(loaded.pieces, instance_id=self.id)
        derive(program, state)
        return query(program, state)

    async def _final(self, *, stalled_too: bool = True) -> State:
        """The state of the instance when it has ended, or stalled; whoever ends it meanwhile tells the watchers."""
        watchers = self._shell.watchers
        while True:
            reply = watchers.register(self.id)
            try:
                host = self._shell.residents.host(self.id)
                state = host.final_state if host is not None else await self._ask(lambda _, state: state)
                if state is not None and (state.is_terminal or (stalled_too and state.is_stalled)):
                    return state
                if self._shell.closing:
                    raise EngineClosed(f"the engine closed before instance {self.id!r} had ended; it goes on later")
                told: State | None = await reply.wait()
                if told is not None and (told.is_terminal or stalled_too):
                    return told
            finally:
                watchers.forget(self.id, reply)

    def _root(self, state: State) -> dict[str, Value]:
        root = next(iter(state.scopes.values()), None)
        return {} if root is None else {name: self._shell.codec.copy(value) for name, value in root.data.items()}


def _stalled(instance_id: str, incidents: tuple[Incident, ...]) -> InstanceStalled:
    lines = "\n".join(
        f"  incident {each.id} ({each.kind.value}) at {each.node!r}: {each.message}" for each in incidents
    )
    return InstanceStalled(
        f"instance {instance_id!r} cannot go on by itself:\n{lines}\n"
        f"retry, resolve or drop the incident (engine.incidents), or wait(through_incidents=True)",
        incidents,
    )
