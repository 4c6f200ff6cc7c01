"""`parse`: a document of N tasks with its diagram, as a modelling tool writes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

import trioflow
from benchmarks.floors import parse as floor
from benchmarks.harness import Benchmark, Case, Plan, Readings, Stopwatch
from trioflow.xml import read

__all__ = ["PARSE", "document"]

SLOW: Final = 10_000
"""From this N on a sample takes seconds: two are enough."""
DOCUMENT: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:bpmndi="http://www.omg.org/spec/BPMN/20100524/DI" xmlns:dc="http://www.omg.org/spec/DD/20100524/DC"
    xmlns:di="http://www.omg.org/spec/DD/20100524/DI" id="definitions" targetNamespace="http://example.com/parse">
  <bpmn:process id="parse{n}" isExecutable="true">
    <bpmn:startEvent id="task0"><bpmn:outgoing>flow0</bpmn:outgoing></bpmn:startEvent>
{nodes}
    <bpmn:endEvent id="ended"><bpmn:incoming>flow{n}</bpmn:incoming></bpmn:endEvent>
    <bpmn:sequenceFlow id="flow{n}" sourceRef="task{n}" targetRef="ended" />
  </bpmn:process>
  <bpmndi:BPMNDiagram id="diagram"><bpmndi:BPMNPlane id="plane" bpmnElement="parse{n}">
{shapes}
  </bpmndi:BPMNPlane></bpmndi:BPMNDiagram>
</bpmn:definitions>
"""
NODE: Final = """\
    <bpmn:sequenceFlow id="flow{before}" sourceRef="task{before}" targetRef="task{number}" />
    <bpmn:serviceTask id="task{number}" name="Task number {number}">
      <bpmn:documentation>What this task does.</bpmn:documentation>
      <bpmn:incoming>flow{before}</bpmn:incoming>
      <bpmn:outgoing>flow{number}</bpmn:outgoing>
    </bpmn:serviceTask>"""
SHAPE: Final = """\
    <bpmndi:BPMNShape id="task{number}_di" bpmnElement="task{number}">
      <dc:Bounds x="{x}" y="80" width="100" height="80" />
    </bpmndi:BPMNShape>
    <bpmndi:BPMNEdge id="flow{before}_di" bpmnElement="flow{before}">
      <di:waypoint x="{before}" y="120" /><di:waypoint x="{x}" y="120" />
    </bpmndi:BPMNEdge>"""


def document(n: int) -> bytes:
    """A process of N service tasks in a row, with shapes and edges."""
    numbers = range(1, n + 1)
    nodes = "\n".join(NODE.format(number=number, before=number - 1) for number in numbers)
    shapes = "\n".join(SHAPE.format(number=number, before=number - 1, x=number * 150) for number in numbers)
    return DOCUMENT.format(n=n, nodes=nodes, shapes=shapes).encode()


@asynccontextmanager
async def _open(plan: Plan) -> AsyncIterator[Sequence[Case]]:
    async with trioflow.open_engine() as engine:

        async def read_only(content: bytes) -> None:
            await trio.lowlevel.checkpoint()
            assert not read(content).findings

        async def deploy(content: bytes) -> None:
            deployed = await engine.deploy(content)
            assert len(deployed) == 1

        kinds = (("read", read_only), ("deploy", deploy))
        yield [_case(variant, work, plan, n) for variant, work in kinds for n in plan.ns]


def _case(variant: str, work: Callable[[bytes], Awaitable[None]], plan: Plan, n: int) -> Case:
    content = document(n)
    rounds = plan.rounds(n)

    async def ours() -> Readings:
        with Stopwatch() as watch:
            for _ in range(rounds):
                await work(content)
        return {"run": watch.reading}

    async def plain() -> Readings:
        with Stopwatch() as watch:
            for _ in range(rounds):
                await trio.lowlevel.checkpoint()
                assert len(floor.ids(content)) > 4 * n
        return {"run": watch.reading}

    return Case(variant=variant, n=n, items=n * rounds, ours=ours, floor=plain, samples=2 if n >= SLOW else 0)


PARSE: Final = Benchmark(
    name="parse",
    title="a file of N tasks: read it; or deploy it (read, check, compile, store)",
    item="task",
    n_means="tasks in the file",
    open=_open,
    full=Plan(ns=(100, 1_000, 10_000), items=1_000, repeat=5),
    quick=Plan(ns=(100, 1_000), items=1_000, repeat=3),
)
