"""What a run does while the engine works: shows what happens, and gives the answers that are waited for."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from trioflow.cli.output import shown
from trioflow.cli.run.answers import Supply
from trioflow.cli.run.listener import Listener
from trioflow.cli.run.prompt import Prompt
from trioflow.errors import TaskNotAvailable
from trioflow.machine.explain import (
    Explanation,
    ForEvents,
    ForMessage,
    ForRetry,
    ForTask,
    ForTimer,
    Ready,
    Reason,
    Running,
    Throwing,
)
from trioflow.runtime.engine import Engine
from trioflow.runtime.instance import Instance

__all__ = ["Driver", "End"]

_MOVES_BY_ITSELF = (Ready, Running, Throwing, ForTimer, ForRetry)


def _reasons(token: Explanation) -> Iterator[Reason]:
    """What the token waits for, and what is armed beside it."""
    yield token.reason
    yield from (each.reason for each in token.beside)


def _moves_by_itself(reason: Reason) -> bool:
    """Whether it happens without an answer: a step that runs, a time that comes."""
    if isinstance(reason, ForEvents):
        return any(_moves_by_itself(event) for event in reason.events)
    return isinstance(reason, _MOVES_BY_ITSELF)


class End(enum.Enum):
    """Why a run is over."""

    OVER = "over"
    """The instance has ended."""
    STUCK = "stuck"
    """Nothing but an operator, or an answer that nobody gives, can move it."""
    TOO_LONG = "too long"
    """The longest time to wait is over."""


class Driver:
    """Follows one instance to its end."""

    def __init__(
        self, *, listener: Listener, supply: Supply, prompt: Prompt | None = None, business_key: str | None = None
    ) -> None:
        self.listener = listener
        self._supply = supply
        self._prompt = prompt
        self._business_key = business_key
        self._refused: set[int] = set()

    async def drive(self, engine: Engine, instance: Instance) -> End:
        """Answer what can be answered, until the instance has ended or nothing can move it."""
        while True:
            change = self.listener.next_change()
            tokens = await instance.explain()
            await self.listener.caught_up()
            if not tokens:
                return End.OVER
            if await self._answer(engine, instance, tokens):
                continue
            if not any(_moves_by_itself(reason) for token in tokens for reason in _reasons(token)):
                return End.STUCK
            await change.wait()

    async def _answer(self, engine: Engine, instance: Instance, tokens: tuple[Explanation, ...]) -> bool:
        """Give one answer; False: none of the tokens waits for anything that there is an answer for."""
        for each in tokens:
            match each.reason:
                case ForTask() as task if await self._complete(engine, instance, each, task):
                    return True
                case ForMessage() as wait if await self._send(engine, instance, each, wait):
                    return True
                case _:
                    continue
        return False

    async def _complete(self, engine: Engine, instance: Instance, each: Explanation, task: ForTask) -> bool:
        if task.task in self._refused:
            return False
        outputs = self._supply.outputs("tasks", each.token.node)
        if outputs is not None:
            self._tell(each, f"answered: {shown(dict(outputs), limit=26)}")
        elif self._prompt is not None:
            outputs = await self._prompt.outputs(f"The user task {each.label} waits for somebody to do it.")
        if outputs is None:
            return False
        try:
            await engine.tasks.complete(f"{instance.id}/{task.task}", outputs)
        except TaskNotAvailable as error:
            self._refused.add(task.task)
            self._tell(each, f"the answer was refused: {error}")
        return True

    async def _send(self, engine: Engine, instance: Instance, each: Explanation, wait: ForMessage) -> bool:
        answer = self._supply.message(wait.name, wait.key, business_key=self._business_key)
        if answer is not None:
            key = wait.key if answer.key is None else answer.key
            payload = answer.payload
            self._tell(each, f"the message {wait.name} is sent")
        elif self._prompt is not None:
            given = await self._prompt.value(f"{each.label} {wait.text}.")
            if given is None:
                return False
            key, payload = wait.key, given.value
        else:
            return False
        sent = await engine.send_message(wait.name, key=key, payload=payload)
        if sent.instance_id != instance.id:
            self._tell(each, f"it went elsewhere ({sent.state} {sent.instance_id or ''})")
        return True

    def _tell(self, each: Explanation, text: str) -> None:
        if self.listener.narrator is not None:
            self.listener.narrator.line(each.token.name or each.token.node, text, style="cyan")
