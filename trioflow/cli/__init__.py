"""The command line.  It needs the extra ``cli`` (click and rich); the library itself never imports this package."""

from __future__ import annotations

import importlib.util
import sys

__all__ = ["main"]

NEEDED = ("click", "rich")


def main() -> None:
    """The entry point ``trioflow``: runs the command that the arguments name, and exits with its status."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"The command line of trioflow needs {' and '.join(missing)}, which this Python does not have.\n"
            f"Install it with:  {sys.executable} -m pip install 'trioflow[cli]'\n"
        )
        raise SystemExit(2)
    from trioflow.cli.app import app  # noqa: PLC0415 - without the extra there is nothing that could be imported

    app(prog_name="trioflow")
