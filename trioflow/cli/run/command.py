"""The command ``trioflow run``: its options, and what they make together."""

from __future__ import annotations

import json
import math
import secrets
import sys
from pathlib import Path
from typing import Any

import click
import trio
from rich.text import Text

from trioflow.cli.narration import Narrator
from trioflow.cli.output import WRONG_USE, console, print_finding, print_json
from trioflow.cli.run.answers import Answers, Supply, read_answers
from trioflow.cli.run.driver import Driver
from trioflow.cli.run.ending import exit_status, print_result, result_document
from trioflow.cli.run.handlers import handlers_for, load_handlers
from trioflow.cli.run.listener import Listener
from trioflow.cli.run.prompt import Prompt
from trioflow.cli.run.session import Plan, run_process
from trioflow.errors import DefinitionNotFound, InvalidRequest
from trioflow.expressions import Languages
from trioflow.machine.program import Program
from trioflow.model import errors
from trioflow.runtime.definitions import check_document, load_document
from trioflow.values import ValueCodec

__all__ = ["run"]

_PATH = click.Path(path_type=Path)


@click.command(short_help="Run a process of a .bpmn file to its end.")
@click.argument("file")
@click.option("--process", "key", help="Which process, where the file has several.")
@click.option("--var", "pairs", multiple=True, metavar="NAME=VALUE", help="A variable: JSON, else a text. Repeatable.")
@click.option("--variables", "variables_file", type=_PATH, help="A JSON file with variables by name.")
@click.option("--answers", "answers_file", type=_PATH, help="A JSON file with answers: see above.")
@click.option("--handlers", "handlers_at", metavar="MODULE:NAME", help="A trioflow.Handlers object with your handlers.")
@click.option("--business-key", help="The business key of the instance.")
@click.option("--instance-id", help="The id of the instance; one that is there already goes on.")
@click.option("--store", envvar="TRIOFLOW_STORE", help="Such as sqlite:///orders.db; without: in memory only.")
@click.option("--engine-id", default="main", show_default=True, help="The name of the engine in the store.")
@click.option(
    "--max-wait",
    metavar="SECONDS",
    type=click.FloatRange(min=0.0),
    default=math.inf,
    help="Give up after so many seconds.",
)
@click.option("--retry", is_flag=True, help="Retry the open incidents of an instance that is there already.")
@click.option("--no-prompt", is_flag=True, help="Ask nobody.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document, and no progress.")
def run(
    *,
    file: str,
    key: str | None,
    pairs: tuple[str, ...],
    variables_file: Path | None,
    answers_file: Path | None,
    handlers_at: str | None,
    business_key: str | None,
    instance_id: str | None,
    store: str | None,
    engine_id: str,
    max_wait: float,
    retry: bool,
    no_prompt: bool,
    as_json: bool,
) -> None:
    """Run a process of the BPMN file FILE to its end, and show what happens.

    What it needs from outside (outputs of user tasks, messages, outputs of service tasks without a handler) comes from
    the answers file, else from the prompt:

    \b
    {"variables": {"amount": 12},
     "handlers": {"charge-card": {"receipt": "r-1"}},
     "tasks": {"check-order": {"approved": true}},
     "messages": [{"name": "picked-up", "key": "o-17", "payload": {}}]}

    A list of objects instead of one object gives the outputs of one time after the other.  The prompt is used without
    an answers file, or at a terminal.

    Exit status: 0 it has ended, 1 it failed or cannot go on, 2 wrong use (nothing was started), 130 interrupted.
    """  # noqa: D301 - for click a backspace marks a paragraph that is not wrapped
    content, programs = _read_model(file)
    program = _chosen(programs, key, file)
    answers = Answers() if answers_file is None else read_answers(answers_file)
    answers.check_against(programs)
    supply = Supply(answers)
    asks = not no_prompt and (answers_file is None or sys.stdin.isatty())
    out = console()
    listener = Listener(None if as_json else Narrator(out, program.nodes))
    prompt = Prompt(console(stderr=as_json), listener) if asks else None
    given = {} if handlers_at is None else load_handlers(handlers_at)
    plan = Plan(
        content=content,
        process_key=program.key,
        handlers=handlers_for(sorted(program.handler_names), given, supply, prompt),
        supply=supply,
        variables={**answers.variables, **_from_file(variables_file), **dict(map(_pair, pairs))},
        instance_id=instance_id or f"{program.key}-{secrets.token_hex(4)}",
        business_key=business_key,
        store=store,
        engine_id=engine_id,
        max_wait=max_wait,
        retry=retry,
    )
    if not as_json:
        out.print(Text(f"{program.graph.process.name or program.key}: instance {plan.instance_id}", style="bold"))
    driver = Driver(listener=listener, supply=supply, prompt=prompt, business_key=business_key)
    result = trio.run(run_process, plan, driver)
    if as_json:
        print_json(result_document(result))
    else:
        print_result(out, result, file=file, store=store, lost=listener.lost)
    raise SystemExit(exit_status(result))


# ------------------------------------------------------------------ what the arguments mean


def _read_model(file: str) -> tuple[bytes, tuple[Program, ...]]:
    """The document and its programs; what would be refused is shown as ``check`` shows it."""
    document, content = load_document(Path(file))
    checked = check_document(document, content, Languages.default(), ValueCodec())
    refusing = errors(checked.findings)
    if refusing:
        out = console(stderr=True)
        for finding in refusing:
            print_finding(out, finding, source=file)
        out.print(
            f"{file} cannot be run: {len(refusing)} error{'' if len(refusing) == 1 else 's'}. Nothing was started."
        )
        raise SystemExit(WRONG_USE)
    return content, checked.programs


def _chosen(programs: tuple[Program, ...], key: str | None, file: str) -> Program:
    keys = ", ".join(program.key for program in programs)
    if not programs:
        raise InvalidRequest(f'{file!r} holds no executable process: remove isExecutable="false" from the one to run')
    if key is None and len(programs) > 1:
        raise InvalidRequest(f"{file!r} holds several processes: name one of {keys} with --process")
    for program in programs:
        if key is None or program.key == key:
            return program
    raise DefinitionNotFound(f"{file!r} holds no executable process {key!r}; it holds {keys}")


def _from_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        variables = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise InvalidRequest(f"cannot read the variables file {str(path)!r}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidRequest(f"variables file {str(path)!r}: this is no JSON: {error}") from error
    if not isinstance(variables, dict):
        raise InvalidRequest(f"variables file {str(path)!r}: expected an object with variables by name")
    return variables


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as amount=12", param_hint="--var")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
