"""The command ``trioflow demo``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click
import trio
from rich.console import Console
from rich.text import Text

from trioflow.cli.demo.coordinator import Places, nodes, perform
from trioflow.cli.demo.ledger import read_ledger
from trioflow.cli.demo.process import DemoFailed
from trioflow.cli.demo.report import print_report, problems, steps_of
from trioflow.cli.output import FAILED, OK, complain, console

__all__ = ["demo"]

INTRODUCTION = """\
An order is run by a worker process: goods are reserved, then the card is charged while the goods are packed, \
somebody checks the order, the carrier picks it up, a timer ends. The model is examples/order.bpmn, the store is \
SQLite. In the middle of charging the card the worker is killed, as by a power cut. A new one goes on."""


@click.command(short_help="See an order process survive a SIGKILL.")
@click.option("--keep", is_flag=True, help="Keep the folder with the store and the ledger.")
def demo(*, keep: bool) -> None:
    """Kill the worker of an order process with SIGKILL in the middle, start it again, and see it go on.

    It takes some seconds, and works in a temporary folder.  Exit status: 0 if all came out as it must, else 1.
    """
    out = console()
    out.print(Text("trioflow demo", style="bold"))
    out.print(INTRODUCTION)
    folder = Path(tempfile.mkdtemp(prefix="trioflow-demo-"))
    failed = False
    try:
        failed = not _play(out, Places(folder=folder))
    finally:
        if not (failed or keep):
            shutil.rmtree(folder, ignore_errors=True)
    if failed or keep:
        out.print(f"\nThe store and the ledger are kept in {folder}")
    raise SystemExit(FAILED if failed else OK)


def _play(out: Console, places: Places) -> bool:
    """Play it and report; False: it did not come out as it must."""
    try:
        ending = trio.run(perform, out, places)
    except DemoFailed as error:
        complain(str(error))
        return False
    steps = steps_of(read_ledger(places.ledger))
    print_report(out, steps, {node.id: node.name for node in nodes().values()})
    wrong = list(problems(steps, ending))
    for problem in wrong:
        complain(problem)
    return not wrong
