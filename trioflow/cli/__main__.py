"""``python -m trioflow.cli``: the command line where the script ``trioflow`` is not on the path."""

from __future__ import annotations

from trioflow.cli import main

if __name__ == "__main__":
    main()
