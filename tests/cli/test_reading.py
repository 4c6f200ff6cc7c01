"""`trioflow instances` and `trioflow show`: what a store holds, without touching it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import trio

import trioflow
from tests.cli.support import answers, call, greeting, saved, shop, widest, words
from tests.conftest import PATIENCE

pytestmark = pytest.mark.usefixtures("no_leaked_threads")


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with three instances: one completed, one that waits for a message, one with an incident."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    model, some = saved(tmp_path, shop()), {"handlers": {"charge-card": {"receipt": "r-1"}}, "tasks": {"check": {}}}
    call("run", model, "--store", url, "--instance-id", "waits", "--business-key", "o-1", "--var", "order_id=o-1",
         "--answers", answers(tmp_path, some))  # fmt: skip
    hello = saved(tmp_path, greeting(), "greeting.bpmn")
    call("run", hello, "--store", url, "--instance-id", "stalls", "--no-prompt")
    call("run", hello, "--store", url, "--instance-id", "ended", "--answers",
         answers(tmp_path, {"handlers": {"greet": {"said": "hello"}}}))  # fmt: skip
    return url


def listed(*arguments: str) -> list[str]:
    """The ids that `instances` lists."""
    result = call("instances", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return [each["id"] for each in json.loads(result.stdout)["instances"]]


def test_instances_are_listed_and_filtered(store: str) -> None:
    """All of them in the order of their ids; by status, incident, process and business key."""
    assert listed("--store", store) == ["ended", "stalls", "waits"]
    assert listed("--store", store, "--status", "completed") == ["ended"]
    assert listed("--store", store, "--status", "active", "--status", "failed") == ["stalls", "waits"]
    assert listed("--store", store, "--incidents") == ["stalls"]
    assert listed("--store", store, "--not-resumed") == []
    assert listed("--store", store, "--process", "shop") == ["waits"]
    assert listed("--store", store, "--business-key", "o-1") == ["waits"]


def test_a_page_ends_at_its_limit_and_the_next_begins_behind_it(store: str) -> None:
    """The list says that there are more, and how to get them."""
    result = call("instances", "--store", store, "--limit", "2")

    assert result.exit_code == 0
    assert "There are more: --after stalls" in result.stdout
    assert listed("--store", store, "--after", "stalls") == ["waits"]
    assert widest(result.stdout) <= 80
    assert "ended   greeting v1  completed" in result.stdout


def test_show_says_why_an_instance_waits(store: str) -> None:
    """Status, version, variables, tokens, and for each token what it waits for."""
    result = call("show", "waits", "--store", store)

    assert result.exit_code == 0
    said = words(result.stdout)
    assert "shop, version 1 (Shop)" in said
    assert "Status active" in said
    assert "Business key o-1" in said
    assert 'receipt "r-1"' in said
    assert "paid waits for the message 'paid' with the key 'o-1'" in said
    assert widest(result.stdout) <= 80


def test_show_has_the_incidents(store: str) -> None:
    """An incident is shown with kind, node and message; for machines with its causes."""
    said = words(call("show", "stalls", "--store", store).stdout)
    document = json.loads(call("show", "stalls", "--store", store, "--json").stdout)

    assert "(missing-handler) at greet" in said
    assert "calls the handler 'greet'" in said
    (incident,) = document["incidents"]
    assert (incident["kind"], incident["node"], incident["state"]) == ("missing-handler", "greet", "open")
    assert document["tokens"][0]["node"] == "greet"


def test_an_instance_that_is_not_there_is_said(store: str) -> None:
    """An unknown id: status 2, and where ids are listed."""
    result = call("show", "nobody", "--store", store)

    assert result.exit_code == 2
    assert "there is no instance 'nobody'" in words(result.stderr)


@pytest.mark.parametrize("command", [("instances",), ("show", "x")])
def test_a_store_that_is_not_there_is_not_created(command: tuple[str, ...], tmp_path: Path) -> None:
    """Reading a path that holds nothing is an error that names it, and leaves nothing behind."""
    result = call(*command, "--store", f"sqlite:///{tmp_path / 'none.db'}")

    assert result.exit_code == 2
    # A long path is broken anywhere, so white space tells nothing.
    assert f"{tmp_path / 'none.db'}:thereisnosuchfile" in "".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_memory_cannot_be_read_from_outside() -> None:
    """`memory:` is refused with the reason."""
    result = call("instances", "--store", "memory:")

    assert result.exit_code == 2
    assert "held in the memory of the program that runs it" in words(result.stderr)


def test_another_group_is_not_there(store: str) -> None:
    """A group that no engine has made is an error, not an empty list."""
    result = call("instances", "--store", store, "--group", "other")

    assert result.exit_code == 2
    assert "other" in result.stderr


async def test_reading_does_not_disturb_a_running_engine(tmp_path: Path) -> None:
    """While an engine runs on the file both commands read it; its instance then ends as if nothing had been."""
    url = f"sqlite:///{tmp_path / 'live.db'}"
    going_on = trio.Event()
    handlers = trioflow.Handlers()

    @handlers.task("greet")
    async def greet(work: trioflow.Work) -> dict[str, object]:
        await going_on.wait()
        return {"said": "hello"}

    async with trioflow.open_engine(url, handlers=handlers, deploy=[greeting()]) as engine:
        instance = await engine.start("greeting", instance_id="g-1")
        listing = await trio.to_thread.run_sync(_outside, "instances", "--store", url)
        showing = await trio.to_thread.run_sync(_outside, "show", "g-1", "--store", url)
        going_on.set()
        outcome = await instance.wait()

    assert "g-1" in listing
    assert "engine main" in showing
    assert "runs it (attempt 1)" in words(showing)
    assert outcome.status is trioflow.Status.COMPLETED


def _outside(*arguments: str) -> str:
    """The output of the command line in a process of its own."""
    command = [sys.executable, "-m", "trioflow.cli", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
