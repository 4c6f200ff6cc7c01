"""`trioflow run`: a process to its end, with answers from a file or the prompt; what is said when it stands still."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import EXAMPLES, answers, call, greeting, patience, saved, shop, widest, words
from tests.conftest import PATIENCE

ALL = {
    "variables": {"order_id": "o-1"},
    "handlers": {"charge-card": {"receipt": "r-1"}},
    "tasks": {"check": {"approved": True}},
    "messages": [{"name": "paid", "key": "o-1", "payload": {"amount": 12}}],
}
OUTCOME = {"order_id": "o-1", "receipt": "r-1", "approved": True, "amount": 12}


def test_the_example_runs_to_its_end_with_its_answers() -> None:
    """The order process ends with status 0: every step is shown in 80 columns, then its variables."""
    result = call("run", EXAMPLES / "order.bpmn", "--answers", EXAMPLES / "order-answers.json", "--instance-id", "o-1")

    assert result.exit_code == 0, result.output
    assert widest(result.stdout) <= 80
    said = words(result.stdout)
    for line in (
        "Charge card runs",
        "Check order waits for a person",
        "Picked up the message carrier-picked-up has come",
        "Return window over the timer fired",
        "Close order done",
        "Instance o-1 is completed.",
        'parcel "p-77"',
    ):
        assert line in said
    assert result.stderr == ""


def test_an_answer_stands_under_its_question(tmp_path: Path) -> None:
    """Progress is shown before the answer that follows from it."""
    result = call("run", saved(tmp_path, shop()), "--answers", answers(tmp_path, ALL))

    lines = [words(line) for line in result.stdout.splitlines()]
    waits = next(index for index, line in enumerate(lines) if line.endswith("check waits for a person"))
    assert lines[waits + 1].startswith("check answered:")


def test_json_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    """With --json the output is the result alone."""
    result = call("run", saved(tmp_path, shop()), "--answers", answers(tmp_path, ALL), "--json")

    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (document["end"], document["status"]) == ("over", "completed")
    assert document["variables"] == OUTCOME


def test_the_prompt_asks_until_it_gets_json(tmp_path: Path) -> None:
    """Without an answers file each answer is asked for; what is no JSON, or no object, is asked for again."""
    lines = ["nonsense", "7", '{"receipt": "r-1"}', '{"approved": true}', '{"amount": 12}']

    result = call("run", saved(tmp_path, shop()), "--var", "order_id=o-1", stdin="\n".join(lines) + "\n")

    assert result.exit_code == 0, result.output
    said = words(result.stdout)
    assert "The service task 'charge' calls 'charge-card'." in said
    assert "That is no JSON" in said
    assert "Expected are outputs by name" in said
    assert "The user task check waits for somebody to do it." in said
    assert "waits for the message 'paid' with the key 'o-1'." in said
    assert "approved true" in said
    assert widest(result.stdout) <= 80


def test_an_empty_line_means_no_outputs_and_the_end_of_input_means_nobody(tmp_path: Path) -> None:
    """Enter completes without outputs; when the input has ended, the run says what it waits for, and ends with 1."""
    result = call("run", saved(tmp_path, shop()), "--var", "order_id=o-1", stdin="\n")

    assert result.exit_code == 1
    assert "waits for what nobody gives" in result.stdout
    assert "check waits for somebody to claim user task" in words(result.stdout)


def test_a_missing_handler_is_an_incident_that_says_what_to_do(tmp_path: Path) -> None:
    """A service task that nothing answers ends the run with 1 and names the handler."""
    result = call("run", saved(tmp_path, greeting()), "--no-prompt")

    assert result.exit_code == 1
    said = words(result.stdout)
    assert "INCIDENT" in said
    assert "(missing-handler) at greet" in said
    assert 'Give its outputs in the answers file under "handlers", or your own handlers with --handlers.' in said
    assert "Traceback" not in result.output
    assert widest(result.stdout) <= 80


def test_own_handlers_are_imported_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--handlers MODULE` finds the object `handlers`; a failure in one is shown with its traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("own_handlers_of_test.py").write_text(
        textwrap.dedent("""
            import trioflow
            handlers = trioflow.Handlers()

            @handlers.task("greet")
            def greet(work):
                return {"greeting": f"Hello {work.inputs['name']}"}
        """),
        "utf-8",
    )
    model = saved(tmp_path, greeting())

    good = call("run", model, "--handlers", "own_handlers_of_test", "--var", "name=Ada", "--json")
    bad = call("run", model, "--handlers", "own_handlers_of_test:handlers", "--no-prompt")

    assert json.loads(good.stdout)["variables"] == {"name": "Ada", "greeting": "Hello Ada"}
    assert bad.exit_code == 1
    assert "KeyError: 'name'" in bad.stdout
    assert "own_handlers_of_test.py" in bad.stdout


WRONG_USE: dict[str, tuple[list[str], str]] = {
    "a file that is not there": (["none.bpmn"], "cannot read 'none.bpmn': No such file or directory"),
    "a process that is not there": (["model.bpmn", "--process", "x"], "holds no executable process 'x'; it holds shop"),
    "answers that are not there": (
        ["model.bpmn", "--answers", "none.json"],
        "cannot read the answers file 'none.json'",
    ),
    "answers for no task": (
        ["model.bpmn", "--answers", "wrong.json"],
        "tasks.chek: the model has no user task 'chek' (it has check); did you mean 'check'?",
    ),
    "variables in no object": (["model.bpmn", "--variables", "list.json"], "expected an object with variables by name"),
    "no such module": (
        ["model.bpmn", "--handlers", "no_such"],
        "the module 'no_such' cannot be imported: ModuleNotFoundError",
    ),
    "no handlers in it": (
        ["model.bpmn", "--handlers", "json:dumps"],
        "expected is a trioflow.Handlers object at 'dumps'",
    ),
    "no such kind of store": (["model.bpmn", "--store", "oracle:x"], "no store is known for the URL 'oracle:x'"),
    "a store that cannot be": (["model.bpmn", "--store", "sqlite:////none/at/all.db"], "/none/at/all.db"),
    "a variable without value": (["model.bpmn", "--var", "x"], "'x' is not NAME=VALUE"),
}


@pytest.mark.parametrize("name", WRONG_USE)
def test_wrong_use_is_told_and_starts_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 2, one message that names what is wrong, no traceback."""
    arguments, said = WRONG_USE[name]
    monkeypatch.chdir(tmp_path)
    saved(tmp_path, shop())
    answers(tmp_path, {"tasks": {"chek": {}}}, "wrong.json")
    answers(tmp_path, [1], "list.json")

    result = call("run", *arguments, "--no-prompt")

    assert result.exit_code == 2, result.output
    assert said in words(result.stderr)
    assert "Traceback" not in result.output


def test_a_model_that_would_be_refused_is_not_started(tmp_path: Path) -> None:
    """Its errors are shown as `check` shows them, with status 2."""
    path = tmp_path / "bad.bpmn"
    path.write_text("<definitions>", "utf-8")

    result = call("run", path)

    assert result.exit_code == 2
    assert f"{path}:1: error [xml-malformed]" in result.stderr
    assert "Nothing was started." in words(result.stderr)


# ------------------------------------------------------------------ over several runs


def test_a_run_goes_on_where_the_last_one_stood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a store and the instance's id, a second run goes on; what it says at the end of the first leads there."""
    monkeypatch.chdir(tmp_path)
    model, store = saved(tmp_path, shop()).name, "sqlite:///shop.db"
    some = {name: value for name, value in ALL.items() if name != "messages"}
    place = ("--store", store, "--instance-id", "o-1")

    first = call("run", model, *place, "--answers", answers(tmp_path, some))
    second = call("run", model, *place, "--answers", answers(tmp_path, ALL), "--json")

    assert first.exit_code == 1
    assert f"--store {store} --instance-id o-1" in words(first.stdout)
    assert second.exit_code == 0
    assert json.loads(second.stdout)["variables"] == OUTCOME


def test_an_incident_is_retried_on_demand(tmp_path: Path) -> None:
    """After an incident a plain second run stands where the first stood; with --retry, and an answer, it ends."""
    model, store = saved(tmp_path, greeting()), f"sqlite:///{tmp_path / 'greeting.db'}"
    place = ("--store", store, "--instance-id", "g-1", "--answers")

    first = call("run", model, *place, answers(tmp_path, {}))
    again = call("run", model, *place, answers(tmp_path, {}))
    retried = call("run", model, *place, answers(tmp_path, {"handlers": {"greet": {"said": "hello"}}}), "--retry")

    assert (first.exit_code, again.exit_code, retried.exit_code) == (1, 1, 0)
    assert "--retry" in first.stdout
    assert 'said "hello"' in words(retried.stdout)


def test_a_run_gives_up_after_the_time_given(tmp_path: Path) -> None:
    """With --max-wait a timer of an hour is not waited for: status 1, and the deadline is named."""
    result = call("run", saved(tmp_path, patience()), "--max-wait", "0")

    assert result.exit_code == 1
    assert "has not ended in the time given" in words(result.stdout)
    assert "waits for the timer that is due at" in words(result.stdout)


def test_ctrl_c_shuts_down_and_says_how_to_go_on(tmp_path: Path) -> None:
    """SIGINT ends the program in order with status 130; the instance stays in the store, held by nobody."""
    store = f"sqlite:///{tmp_path / 'patience.db'}"
    command: list[Any] = [sys.executable, "-m", "trioflow.cli", "run", saved(tmp_path, patience())]
    command += ["--store", store, "--instance-id", "p-1"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    said = b""
    while b"waits for its timer" not in said:
        assert select.select([process.stdout], [], [], PATIENCE)[0], said
        said += os.read(process.stdout.fileno(), 4096)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode == 130
    assert "Interrupted. Instance p-1 has not ended." in words(rest.decode())
    assert "Traceback" not in rest.decode()
    shown = call("show", "p-1", "--store", store)
    assert "no engine: it waits in the store" in shown.stdout
