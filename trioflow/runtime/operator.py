"""Incidents: list them, and retry, resolve or drop them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trioflow.checkpoint.records import IncidentRow
from trioflow.machine.events import DropIncident, Event, ResolveIncident, RetryIncident
from trioflow.runtime.acts import Act, Reply

if TYPE_CHECKING:
    from trioflow.runtime.shell import Shell

__all__ = ["Incidents"]


class Incidents:
    """The incidents of an engine's group.  An incident is named by its instance and its number there."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def query(
        self,
        *,
        instance_id: str | None = None,
        dropped: bool = False,
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> tuple[IncidentRow, ...]:
        """Open incidents (``dropped``: dead letters) in the order of (instance id, incident id)."""
        state = "dropped" if dropped else "open"
        return await self._shell.store.incidents(instance_id=instance_id, state=state, after=after, limit=limit)

    async def retry(self, instance_id: str, incident: int, *, variables: Mapping[str, Any] | None = None) -> None:
        """Try again what failed, under the same idempotency key; with changed ``variables`` as a new entry.

        Returns when that is stored; ``InvalidRequest`` if there is no such open incident.
        """
        await self._act(instance_id, RetryIncident(incident=incident, variables=variables))

    async def resolve(
        self,
        instance_id: str,
        incident: int,
        outputs: Mapping[str, Any] | None = None,
        *,
        flows: Sequence[str] = (),
    ) -> None:
        """Go on as if it had worked: with these outputs, along ``flows`` or those that the node chooses."""
        await self._act(instance_id, ResolveIncident(incident=incident, outputs=outputs or {}, flows=tuple(flows)))

    async def drop(self, instance_id: str, incident: int) -> None:
        """Give the token up; the incident is kept as a dead letter."""
        await self._act(instance_id, DropIncident(incident=incident))

    async def load_again(self, instance_id: str) -> None:
        """Try once more to load an instance that is quarantined, drifted or misses its definition.

        Raises what keeps it from being loaded; returns when it is loaded.
        """
        reply = Reply()
        self._shell.residents.retry(instance_id, Act(query=lambda _, __: None, reply=reply))
        await reply.wait()

    async def _act(self, instance_id: str, event: Event) -> None:
        await self._shell.residents.call(instance_id, Act(event, reply=Reply()))
