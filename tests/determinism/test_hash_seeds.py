"""The hashes of texts differ from process to process: nothing that anybody sees or stores may depend on them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice, zip_longest

from tests.conftest import ROOT

SEEDS = ("0", "1", "4711")
"""Three: two orders of a small set are the same by chance too often."""
SHOWN = 3


def start(seed: str) -> subprocess.Popen[str]:
    """Start the script under a hash seed."""
    command = [sys.executable, "-W", "error", "-m", "tests.determinism.script"]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8")


def printed(process: subprocess.Popen[str]) -> str:
    """What it printed; it must have succeeded."""
    with process:
        output, _ = process.communicate()
    assert process.returncode == 0
    return output


def differences(one: str, two: str) -> Iterator[str]:
    """The first lines that differ, cut to the part around where they do."""
    pairs = zip_longest(one.splitlines(), two.splitlines(), fillvalue="")
    for left, right in islice(((left, right) for left, right in pairs if left != right), SHOWN):
        at = next((at for at, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), 0)
        around = slice(max(0, at - 60), at + 60)
        yield f"{left[:60]} [...] {left[around]}\n{right[:60]} [...] {right[around]}"


def test_the_same_bytes_come_out_under_every_hash_seed() -> None:
    """Findings, written XML, digests, transitions, explanations, documents, values and error messages are the same."""
    first, *others = [printed(process) for process in [start(seed) for seed in SEEDS]]

    assert len(first.splitlines()) > 300
    for other in others:
        assert first == other, "\n".join(differences(first, other))
