"""The verdict about each scope of a process, inner scopes first."""

from __future__ import annotations

from attrs import frozen

from trioflow.model.activities import AdHocSubProcess, SubProcess
from trioflow.model.checks.view import containers, is_event_sub_process
from trioflow.model.graph import Graph
from trioflow.model.soundness.conditions import ALWAYS
from trioflow.model.soundness.judge import Flaw, Judge
from trioflow.model.soundness.net import ENTRY, Net
from trioflow.model.soundness.outside import can_be_stopped, interrupters
from trioflow.model.soundness.region import Region
from trioflow.model.soundness.steps import OutOfSteps, Steps

__all__ = ["STEPS_PER_ARC", "Verdict", "analyse"]

STEPS_PER_ARC = 100
"""The budget of a scope; what it is not enough for is not decided."""
_LEAST_STEPS = 20_000


@frozen(kw_only=True)
class Verdict:
    """What is known about one scope.

    ``flaws`` are certain.  Without any, and with nothing ``undecided``, the scope is sound: no run of it leaves a
    token waiting at a join, or has two on one flow.  ``undecided`` says what was not looked through, and why.
    """

    scope: str
    flaws: tuple[Flaw, ...] = ()
    undecided: tuple[str, ...] = ()
    steps: int = 0


def analyse(graph: Graph) -> tuple[Verdict, ...]:
    """The verdicts about the process and its sub-processes, in document order."""
    found: list[Verdict] = []
    interrupting = interrupters(graph)
    incomplete: set[str] = set()
    for scope in reversed(list(containers(graph))):
        if isinstance(scope, AdHocSubProcess):
            found.append(Verdict(scope=scope.id, undecided=("what runs in it is chosen while it runs",)))
            continue
        net = Net.of(graph, scope, interrupting=interrupting, incomplete=incomplete)
        analysis = _Analysis(net, Steps(max(_LEAST_STEPS, STEPS_PER_ARC * len(net.arcs))))
        found.append(analysis.verdict())
        if analysis.never_completes():
            incomplete.add(scope.id)
    return tuple(reversed(found))


class _Analysis:
    """The regions of one scope: what its entry sets off, and what each event with a flow of its own does."""

    def __init__(self, net: Net, steps: Steps) -> None:
        self.net = net
        self.steps = steps
        self.flaws: list[Flaw] = []
        self.undecided: list[str] = []
        self._deadly = net.leading_to_an_end_of_the_scope()
        self._can_be_stopped = can_be_stopped(net.graph, net.scope)
        self._main: Region | None = None

    def verdict(self) -> Verdict:
        """Look at all regions, as far as the steps go."""
        try:
            self._look()
        except OutOfSteps:
            self.undecided.append("it has more ways to go than there are steps to look")
            self._main = None
        return Verdict(
            scope=self.net.scope.id,
            flaws=tuple(self.flaws),
            undecided=tuple(dict.fromkeys(self.undecided)),
            steps=self.steps.taken,
        )

    def _look(self) -> None:
        entries = [ENTRY]
        for entry in entries:
            members = frozenset(self.net.reachable(entry))
            region = Region(self.net, members, entry, self.steps, deadly=self._deadly).run()
            if entry == ENTRY:
                self._main = region
            self._judge(region)
            for host in region.rank:
                sides = self.net.nodes[host].sides
                entries.extend(sides if sides and region.is_met(host) else ())

    def _judge(self, region: Region) -> None:
        judge = Judge(region, self._can_be_stopped)
        try:
            self.flaws.extend(judge.flaws())
        finally:
            self.undecided.extend(region.undecided)

    def never_completes(self) -> bool:
        """Whether each run certainly ends by an error or a cancel, or not at all, with nothing to mend that."""
        main, graph, scope = self._main, self.net.graph, self.net.scope
        if main is None or main.undecided or main.vague or not isinstance(scope, SubProcess):
            return False
        if any(is_event_sub_process(child) for child in graph.children.get(scope.id, ())):
            return False
        lost = (
            main.aborted,
            main.stopped,
            *main.starved.values(),
            *(loop.when for loop in main.loops.values() if loop.plain and not loop.exits and not loop.ends),
        )
        return main.conditions.any_of(lost) == ALWAYS
