"""What is wrong with a region for certain: from conditions to flaws, each with the run that shows it.

Which way a condition goes is data, and data can tie decisions together that look free.  So a flaw must need no more
than *one* decision: once that flow is taken (or that one boundary event fires), it comes about however all other
conditions go.  What needs several decisions together is not decided.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from attrs import define, frozen

from trioflow.model.flow import FlowNode
from trioflow.model.soundness.conditions import ALWAYS, NEVER
from trioflow.model.soundness.net import Arc, Node
from trioflow.model.soundness.region import Loop, Region
from trioflow.model.soundness.witness import Path, Run, cycle

__all__ = ["Flaw", "Judge", "Kind"]

_COMBINED = "what happens there depends on several decisions together"


class Kind(enum.Enum):
    """What can be wrong; the value is the name of the rule."""

    DEADLOCK = "deadlock"
    NEVER_FIRES = "join-never-fires"
    UNSYNCHRONISED = "lack-of-synchronisation"
    ENDLESS = "endless-loop"


@frozen(kw_only=True)
class Flaw:
    """One flaw: where, and the paths of node ids that show it.

    ``paths``: of a waiting token from where it parted from the missing one to the join; of two tokens from where they
    parted to where they meet; or once round a loop.  ``missing``: the id of the flow on which nothing comes.
    ``cause``: the id of the flow or boundary event that makes it certain, once it is ``taken`` (or, if that is false,
    once it is not); None if it comes about whatever is decided.  ``quiet``: as long as no other event prevents it, such
    as a boundary timer or an end event that ends the scope.
    """

    kind: Kind
    node: FlowNode
    paths: tuple[Path, ...]
    missing: str | None = None
    cause: str | None = None
    taken: bool = True
    quiet: bool = False


@frozen(eq=False)
class _Cause:
    """A decision that may be enough: the flow or event, and the runs in which it is made."""

    when: int
    arc: Arc | None = None
    taken: bool = True


@frozen(eq=False)
class _Case:
    """A decision that is enough, ``quiet`` if only as long as nothing prevents it, and a run in which it is made."""

    cause: _Cause
    run: Run
    quiet: bool


@define(eq=False)
class Judge:
    """Finds the flaws of a region and of the loops in it, and adds to its ``undecided`` what stays open.

    ``can_be_stopped``: something from outside can end the scope, so that an endless loop in it may be meant.
    """

    region: Region
    can_be_stopped: bool

    def flaws(self) -> Iterator[Flaw]:
        """All flaws; may raise ``OutOfSteps``."""
        region = self.region
        for number, when in region.starved.items():
            yield from self._deadlock(region.net.nodes[number], when)
        for number, when in region.crowded.items():
            yield from self._meeting(region.net.nodes[number], when)
        for loop in region.loops.values():
            if loop.when != NEVER and not loop.vague:
                yield from self._loop(loop)

    # -------------------------------------------------------------- each kind

    def _deadlock(self, join: Node, when: int) -> Iterator[Flaw]:
        found = self._certain(join, when)
        if found is None:
            return
        run = found.run
        if run.is_consequence(join):
            return
        missing = run.missing(join)
        is_dead = self.region.when.get(missing.number, NEVER) == NEVER
        yield Flaw(
            kind=Kind.NEVER_FIRES if is_dead else Kind.DEADLOCK,
            node=_element(join),
            paths=(run.waiting_path(join),),
            missing=missing.flow.id if missing.flow is not None else None,
            cause=self._named(found.cause),
            taken=found.cause.taken,
            quiet=found.quiet,
        )

    def _meeting(self, node: Node, when: int) -> Iterator[Flaw]:
        found = self._certain(node, when)
        if found is None:
            return
        yield Flaw(
            kind=Kind.UNSYNCHRONISED,
            node=_element(node),
            paths=found.run.meeting_paths(node),
            cause=self._named(found.cause),
            taken=found.cause.taken,
            quiet=found.quiet,
        )

    def _loop(self, loop: Loop) -> Iterator[Flaw]:
        region = self.region
        is_endless = loop.plain and not loop.exits and not loop.ends
        if is_endless and not self.can_be_stopped and region.ended == NEVER:
            path = cycle(region.net, loop)
            yield Flaw(kind=Kind.ENDLESS, node=region.net.graph.nodes[path[0]], paths=(path,))
        if loop.round is not None and (loop.round.starved or loop.round.crowded or loop.round.loops):
            yield from self._round(loop, loop.round)

    def _round(self, loop: Loop, one: Region) -> Iterator[Flaw]:
        region = self.region
        if region.conditions.butnot(loop.when, region.ended) == NEVER:
            head = _element(region.net.nodes[one.entry])
            region.undecided.append(f"{head.id!r}: whenever a token comes to its loop, the scope is ended as a whole")
            return
        known = len(one.undecided)
        yield from Judge(one, self.can_be_stopped or region.ended != NEVER).flaws()
        region.undecided.extend(one.undecided[known:])

    # -------------------------------------------------------------- one decision that is enough

    def _certain(self, node: Node, when: int) -> _Case | None:
        """The first decision after which it happens whatever else is decided, with such a run, if there is one."""
        conditions = self.region.conditions
        event = conditions.butnot(when, self.region.ended)
        concerned = conditions.choices_in(event)
        for cause in self._causes(node, concerned):
            case = self._case(cause, event, concerned)
            if case is not None:
                return case
        self.region.undecided.append(f"{_element(node).id!r}: {_COMBINED}")
        return None

    def _case(self, cause: _Cause, event: int, concerned: AbstractSet[int]) -> _Case | None:
        region, conditions = self.region, self.region.conditions
        all_runs = conditions.butnot(cause.when, region.stopped)
        quiet = self._quiet_events(cause.when, concerned)
        runs = conditions.without(all_runs, quiet)
        if runs == NEVER or conditions.butnot(runs, conditions.without(event, quiet)) != NEVER:
            return None
        made = {**conditions.example(runs), **dict.fromkeys(quiet, False)}
        if cause.arc is None:
            all_runs = conditions.butnot(ALWAYS, region.stopped)
        return _Case(cause, Run(region, made), quiet=conditions.butnot(all_runs, event) != NEVER)

    def _causes(self, node: Node, concerned: AbstractSet[int]) -> Iterator[_Cause]:
        yield _Cause(ALWAYS)
        # Some run is not cut short: if none is, then all that lies beside the end event is there for nothing.
        yield _Cause(self.region.conditions.butnot(ALWAYS, self.region.ended))
        for choice in sorted(concerned):
            for decision in self.region.decisions[choice]:
                yield _Cause(decision.when, decision.arc, decision.taken)
        for arc in node.ins:
            if arc.flow is not None:
                yield _Cause(self.region.when.get(arc.number, NEVER), arc)

    def _quiet_events(self, when: int, concerned: AbstractSet[int]) -> frozenset[int]:
        """The boundary events that need not fire for a decision: they do not, for one surprise is enough."""
        conditions = self.region.conditions
        here = conditions.choices_in(when)
        needed = {event for event in here & self.region.events if conditions.without(when, {event}) == NEVER}
        return frozenset(((here | concerned) & self.region.events) - needed)

    def _named(self, cause: _Cause) -> str | None:
        if cause.arc is None:
            return None
        element = self.region.net.nodes[cause.arc.target].element
        flow = cause.arc.flow
        return flow.id if flow is not None else element.id if element is not None else None


def _element(node: Node) -> FlowNode:
    assert node.element is not None, "the entry merges nothing"
    return node.element
