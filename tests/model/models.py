"""Built models of many shapes: the digests are pinned for them, and they are written and read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from trioflow.model import Definitions, ProcessBuilder, SignalEventDefinition
from trioflow.model.builder import (
    DefinitionsBuilder,
    cancel,
    compensate,
    condition,
    error,
    escalation,
    for_each,
    link,
    loop,
    message,
    signal,
    terminate,
    timer,
    times,
)


def order() -> Definitions:
    """Tasks, a choice with a default, and a boundary timer."""
    process = ProcessBuilder("order", name="Order")
    paid = process.start("received").service("charge", handler="charge-card").exclusive("paid")
    paid.when("amount > 100").user("check", candidate_groups=["sales"]).end("checked")
    paid.otherwise().end("done")
    late = process.at("charge").boundary("late", on=timer(duration="PT1H"), interrupting=False)
    late.send("warn", message="late").end("warned")
    return process.build()


def every_task() -> Definitions:
    """Each kind of task, with the options of its kind."""
    process = ProcessBuilder("tasks")
    (
        process.start("s", name="Start", documentation="Where it begins.")
        .task("abstract", start_quantity=2, completion_quantity=3)
        .manual("manual")
        .service("service", handler="charge", inputs={"amount": "order.total"}, outputs={"order.receipt": "receipt"})
        .send("send", message="order placed")
        .receive("receive", message="paid", key="order.id")
        .user("user", assignee="ann", candidate_users="bob", priority=50, due_date="now() + duration('P1D')")
        .script("script", "x = 1", script_format="text/x-python")
        .rule("rule", handler="discount")
        .call("call", process="shipping")
        .end("e")
    )
    return process.build()


def every_gateway() -> Definitions:
    """Fork and join by each kind of gateway, and an event-based choice."""
    process = ProcessBuilder("gateways")
    fork = process.start("s").parallel("fork", direction="Diverging")
    fork.inclusive("some").when("a").to(process.inclusive("join_some"))
    process.at("some").otherwise().to("join_some")
    process.at("join_some").to(process.parallel("join"))
    fork.task("x").to(process.complex("two", activation="activationCount >= 1"))
    fork.task("y").to("two").to("join")
    first = process.at("join").event_gateway("first")
    first.catch("came", on=message("m", key="id")).end("e1")
    first.catch("late", on=timer(date="2026-01-01T00:00:00Z")).end("e2")
    return process.build()


def every_event() -> Definitions:
    """Starts, catches, throws and ends of each kind, multiple ones, and links."""
    process = ProcessBuilder("events")
    process.start("none").to(process.exclusive("merge"))
    process.start("cyclic", on=timer(cycle="R/P1D")).to("merge")
    process.start("several", on=[message("m"), signal("s")], parallel=True).to("merge")
    (
        process.at("merge")
        .catch("c1", on=condition("stock > 0"))
        .catch("c2", on=[signal("a"), timer(duration="PT5M")])
        .throw("t1", on=message("out", key="id"), inputs={"amount": "order.total", "to": "customer"})
        .throw("t2", on=signal("done"))
        .throw("t3", on=escalation("slow"))
        .throw("milestone")
        .throw("jump", on=link("L"))
    )
    ends = process.catch("land", on=link("L"), name="Landing").parallel("ends")
    ends.end("e1", on=error("E"))
    ends.end("e2", on=terminate())
    ends.end("e3", on=[message("bye"), signal("bye")])
    return process.build()


def travel() -> Definitions:
    """A transaction with compensation and cancel, and handlers beside it."""
    process = ProcessBuilder("travel")
    booking = process.start("s").transaction("booking")
    with booking as inside:
        hotel = inside.start("bs").service("hotel")
        hotel.boundary("undo", on=compensate()).undone_by(inside.service("cancel_hotel", for_compensation=True))
        hotel.exclusive("fine").when("ok").end("be")
        inside.at("fine").otherwise().end("abort", on=cancel())
    booking.throw("undo_all", on=compensate("booking", wait=False)).end("e")
    booking.boundary("cancelled", on=cancel()).to("e")
    booking.boundary("failed", on=error()).to("e")
    with process.event_subprocess("watch") as watch:
        watch.start("slow", on=escalation(), interrupting=False).end("seen")
    with process.event_subprocess("stop") as stop:
        stop.start("told", on=message("stop", key="id"), outputs={"reason": "reason"}).end("stopped")
    return process.build()


def repeated() -> Definitions:
    """Loops, multi-instances and an ad-hoc sub-process over data."""
    process = ProcessBuilder("repeated")
    process.data_object("orders", name="Orders", collection=True)
    process.property("limit")
    packed = (
        process.start("s")
        .task("again", loop=loop("loopCounter < 3", maximum=5, test_before=True))
        .service("three", loop=times(3, sequential=True, until="enough"))
        .subprocess("pack", loop=for_each("orders", item="order", max_concurrent=2), inputs={"box": "limit"})
    )
    with packed as pack:
        pack.data_object("weight")
        pack.start("ps").task("weigh", outputs={"weight": "kilos"}).end("pe")
    help_yourself = packed.ad_hoc("chosen", ordering="Sequential", until="done", cancel_remaining=False)
    with help_yourself as chosen:
        chosen.task("one").task("two")
        chosen.user("three_more")
    help_yourself.end("e")
    return process.build()


def two_processes() -> Definitions:
    """A document with a caller, a callee, and shared root elements."""
    document = DefinitionsBuilder("both", name="Both", expression_language="urn:trioflow:python")
    document.item("text", structure="str")
    document.message("paid", root_id="paid_message", item="text")
    document.data_store("ledger", name="Ledger")
    document.add(SignalEventDefinition(id="ring", signal_ref=document.signal("bell").id))
    caller = document.process("caller", documentation="Calls.")
    caller.data_store_reference("book", "ledger")
    caller.data_object("order", item="text")
    caller.data_object_reference("order_paid", "order", state="paid")
    caller.start("s").call("sub", process="callee").end("e")
    callee = document.process("callee", name="Callee")
    callee.start("cs").receive("wait", message="paid", key="id").end("ce")
    return document.build()


MODELS: Mapping[str, Callable[[], Definitions]] = MappingProxyType(
    {
        build.__name__: build
        for build in (order, every_task, every_gateway, every_event, travel, repeated, two_processes)
    }
)
