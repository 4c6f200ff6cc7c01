"""Where the outputs of service tasks come from: the user's handlers, the answers file, or the prompt."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trioflow.cli.run.answers import Supply
from trioflow.cli.run.prompt import Prompt
from trioflow.errors import InvalidRequest
from trioflow.runtime.handlers import Handler, Handlers
from trioflow.runtime.work import Work

__all__ = ["handlers_for", "load_handlers"]


def load_handlers(where: str) -> Mapping[str, Handler]:
    """The handlers at ``module:attribute`` (or in ``module``, as ``handlers``), also from the current folder.

    ``InvalidRequest`` says what could not be imported, or what was found there instead.
    """
    module_name, _, attribute = where.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise InvalidRequest(
            f"--handlers {where}: the module {module_name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.remove(str(Path.cwd()))
    found = getattr(module, attribute or "handlers", None)
    if isinstance(found, Handlers):
        return found
    raise InvalidRequest(
        f"--handlers {where}: expected is a trioflow.Handlers object at {attribute or 'handlers'!r} "
        f"of {module_name!r}, but there is {'nothing' if found is None else f'a {type(found).__name__}'}"
    )


def handlers_for(
    names: Iterable[str], given: Mapping[str, Handler], supply: Supply, prompt: Prompt | None
) -> dict[str, Handler]:
    """The handlers of a run: an answer in the file stands before a handler of that name, and the prompt after it.

    A name that nothing answers has no handler: a token that gets there becomes an incident that says so.
    """
    handlers = dict(given)
    for name in names:
        if name in supply.answers.handlers or (name not in given and prompt is not None):
            handlers[name] = Handler(name=name, function=_Answering(name, supply, prompt))
    return handlers


class _Answering:
    """Stands for a handler: its outputs come from the file, or from a person."""

    def __init__(self, name: str, supply: Supply, prompt: Prompt | None) -> None:
        self._name = name
        self._supply = supply
        self._prompt = prompt

    async def __call__(self, work: Work) -> Mapping[str, Any]:
        outputs = self._supply.outputs("handlers", self._name)
        if outputs is None and self._prompt is not None:
            outputs = await self._prompt.outputs(f"The service task {work.node_id!r} calls {self._name!r}.")
        if outputs is None:
            raise InvalidRequest(f"nothing answers for the handler {self._name!r} any more")
        return outputs
