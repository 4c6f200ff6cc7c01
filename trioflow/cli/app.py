"""The group of all commands, and what becomes of an error that reaches it."""

from __future__ import annotations

import io
import logging
import sys
from typing import IO, Any

import click

from trioflow.cli.check import check
from trioflow.cli.demo.command import demo
from trioflow.cli.instances import instances
from trioflow.cli.output import WRONG_USE, complain
from trioflow.cli.run.command import run
from trioflow.cli.show import show
from trioflow.errors import TrioflowError

__all__ = ["app"]


class Refused(click.ClickException):
    """An error that trioflow raises on purpose: its text is for people, so it is shown without a traceback."""

    exit_code = WRONG_USE

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - click's signature
        complain(self.message)


class App(click.Group):
    """Commands whose ``TrioflowError`` is a message and exit status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except (TrioflowError, BaseExceptionGroup) as error:
            alone = _alone(error)
            if isinstance(alone, TrioflowError):
                raise Refused(str(alone)) from error
            if isinstance(alone, SystemExit | KeyboardInterrupt):
                raise alone from None  # the output was closed, or somebody has had enough
            raise


def _alone(error: BaseException) -> BaseException:
    """What nurseries have wrapped, if it is one exception alone."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trioflow", message="%(prog)s %(version)s")
def app() -> None:
    """Run BPMN 2.0 processes that survive crashes.

    Begin with "trioflow demo".  Exit status: 0 all is well, 1 what was run or checked did not succeed, 2 wrong use.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name in a model may hold what the terminal cannot show: that is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    logger = logging.getLogger("trioflow")
    if not logger.handlers:
        # Commands show incidents and refusals themselves; the log would say them again, with tracebacks.
        logger.addHandler(logging.NullHandler())


for command in (demo, run, check, instances, show):
    app.add_command(command)
