"""When each arc of a region carries a token.

A region is what one token can set off: a scope from its entry, one round of a loop from its head, the flow of a
non-interrupting event.  Without its loops it has no cycles, and its nodes are met in an order in which the conditions
of all arcs into a node are known when it is met.  A loop is a region by itself; if one token that comes in makes one
token that goes on or round again, the loop is one choice among its exits, seen from outside.

The conditions are exact as long as no arc carries two tokens at once.  Behind a place where that fails, or that is not
understood, arcs are *vague*: their condition says when a token may come at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from attrs import define, field, frozen

from trioflow.model.soundness.components import components
from trioflow.model.soundness.conditions import ALWAYS, NEVER, Conditions
from trioflow.model.soundness.net import Arc, Merge, Net, Node, Role
from trioflow.model.soundness.steps import Steps

__all__ = ["Decision", "Loop", "Region"]

_ONE_TOKEN = frozenset({Role.ALWAYS, Role.CHOICE, Role.INTERRUPTS})
DEEPEST = 50
"""Loops nested deeper than this are not looked into."""


@frozen(eq=False)
class Decision:
    """A flow or event for which a run can decide, and when it is taken (or not)."""

    arc: Arc
    when: int
    taken: bool = True


@define(eq=False)
class Loop:
    """A cycle of a region: its nodes, when a token comes to it, and one round of it if it has a single head.

    ``ends``: a token can end inside of it, at a node without a way on.  ``plain``: a token that comes in makes one
    token that leaves, if ever.
    """

    members: AbstractSet[int]
    when: int
    vague: bool
    exits: tuple[Arc, ...]
    ends: bool
    plain: bool = False
    round: Region | None = None


@define(eq=False)
class Region:
    """The conditions of the arcs among ``members`` that one token at ``entry`` gives."""

    net: Net
    members: AbstractSet[int]
    entry: int
    steps: Steps
    deadly: AbstractSet[int] = frozenset()
    """The nodes of the net from which a token can come to an end of the whole scope."""
    depth: int = 0
    conditions: Conditions = field(init=False)
    when: dict[int, int] = field(factory=dict)
    """Number of an arc to the condition under which it carries a token."""
    reached: dict[int, int] = field(factory=dict)
    """Number of a node to the condition under which it passes a token on."""
    rank: dict[int, int] = field(factory=dict)
    """Number of a node to its place in the order of tokens; the nodes of one loop share one."""
    vague: set[int] = field(factory=set)
    shadowed: set[int] = field(factory=set)
    """The arcs behind a join that can starve: a token that waits there for ever holds back inclusive joins too."""
    decisions: dict[int, list[Decision]] = field(factory=dict)
    """By their choices."""
    events: set[int] = field(factory=set)
    """The choices of boundary events that may well not fire; what fires others can be part of the model."""
    starved: dict[int, int] = field(factory=dict)
    """Number of a parallel join to the condition under which it has a token and misses another."""
    crowded: dict[int, int] = field(factory=dict)
    """Number of a node that passes each token on to the condition under which several come."""
    ended: int = NEVER
    """When an end ends the whole scope."""
    aborted: int = NEVER
    """When such an end also keeps the scope from completing."""
    stopped: int = NEVER
    """When no condition behind an inclusive choice is true: an incident, whatever comes of it."""
    loops: dict[int, Loop] = field(factory=dict)
    """By their ranks."""
    undecided: list[str] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.conditions = Conditions(self.steps)

    def run(self) -> Region:
        """Find all conditions; may raise ``OutOfSteps``."""
        for rank, component in enumerate(components(self.net, self.members, self.entry, self.steps)):
            self.rank.update(dict.fromkeys(component, rank))
            if self._is_loop(component):
                self._pass_loop(component)
            else:
                self._pass_node(self.net.nodes[component[0]])
        return self

    def is_met(self, number: int) -> bool:
        """Whether a token certainly can come to the node."""
        if self.reached.get(number, NEVER) == NEVER:
            return False
        loop = self.loops.get(self.rank[number])
        if loop is not None:
            return not loop.vague and (loop.round is None or loop.round.is_met(number))
        return not any(arc.number in self.vague for arc in self.net.nodes[number].ins)

    def _is_loop(self, component: list[int]) -> bool:
        if len(component) > 1:
            return True
        node = component[0]
        return node != self.entry and any(arc.target == node for arc in self.net.nodes[node].outs)

    # -------------------------------------------------------------- arriving

    def _pass_node(self, node: Node) -> None:
        if node.number == self.entry:
            when, vague = ALWAYS, False
        else:
            when, vague = self._arrive(node)
        self._account(node, when)
        self._leave(node.outs, when, vague=vague or node.unclear)
        self._shadow([node], node.outs)
        if node.incomplete and not vague:
            self.stopped = self.conditions.any_of((self.stopped, self._left_over(node, when)))
        if node.unclear and when != NEVER:
            self._give_up(node, "how many tokens leave it, or start it, depends on more than its flows")

    def _arrivals(self, node: Node) -> list[int]:
        """The conditions of the arcs into a node; an arc that nothing leads to never carries a token."""
        self.steps.take(len(node.ins))
        return [self.when.get(arc.number, NEVER) for arc in node.ins]

    def _arrive(self, node: Node) -> tuple[int, bool]:
        """When the node passes a token on, and whether that is vague."""
        found = self._arrivals(node)
        some = self.conditions.any_of(found)
        if any(arc.number in self.vague for arc in node.ins):
            return some, True
        match node.merge if node.joins else Merge.ONE:
            case Merge.ONE:
                return some, self._is_crowded(node, found)
            case Merge.ALL:
                every = self.conditions.all_of(found)
                self._note(self.starved, node, self.conditions.butnot(some, every))
                return every, False
            case Merge.SOME:
                return some, not self.shadowed.isdisjoint(arc.number for arc in node.ins)
            case _:
                return some, True

    def _is_crowded(self, node: Node, found: list[int]) -> bool:
        # Several tokens at a node without a way out do no harm: they end there.
        twice = self.conditions.overlap(found) if node.outs or node.sides else NEVER
        self._note(self.crowded, node, twice)
        return twice != NEVER

    def _note(self, where: dict[int, int], node: Node, condition: int) -> None:
        if condition != NEVER:
            where[node.number] = condition

    def _account(self, node: Node, when: int) -> None:
        self.reached[node.number] = when
        if node.ends_scope:
            self.ended = self.conditions.any_of((self.ended, when))
        if node.aborts:
            self.aborted = self.conditions.any_of((self.aborted, when))
        if node.merge is Merge.UNKNOWN and node.joins and when != NEVER:
            self._give_up(node, "what it waits for depends on more than its flows")

    def _shadow(self, nodes: Iterable[Node], outs: Iterable[Arc]) -> None:
        before = (arc.number for node in nodes for arc in node.ins)
        if any(node.number in self.starved for node in nodes) or not self.shadowed.isdisjoint(before):
            self.shadowed.update(arc.number for arc in outs)

    def _give_up(self, node: Node, why: str) -> None:
        element = node.element
        self.undecided.append(f"{element.id!r}: {why}" if element is not None else why)

    # -------------------------------------------------------------- leaving

    def _leave(self, outs: Iterable[Arc], when: int, *, vague: bool) -> None:
        """Give a token to the arcs as their roles say."""
        roles: dict[Role, list[Arc]] = {}
        for arc in outs:
            roles.setdefault(arc.role, []).append(arc)
            if vague and when != NEVER:
                self.vague.add(arc.number)
        if vague or when == NEVER:
            self.when.update({arc.number: when for arc in outs})
            return
        for arc in roles.get(Role.SPAWNS, ()):
            self._spawn(arc, when)
        for arc in roles.get(Role.INTERRUPTS, ()):
            when = self._interrupt(arc, when)
        self._choose(roles.get(Role.CHOICE, []), when)
        self._opt(roles, when)
        self.when.update({arc.number: when for arc in roles.get(Role.ALWAYS, ())})

    def _spawn(self, arc: Arc, when: int) -> None:
        self._interrupt(arc, when)
        self._give_up(self.net.nodes[arc.target], "how often it fires is not known, and its flow meets the others")

    def _either(self, arc: Arc, when: int) -> int:
        """Let the token take the arc or not; return when it does not."""
        choice = self.conditions.choice()
        self._decide(arc, self.conditions.taken(choice, when), choice)
        return self.conditions.left(choice, when)

    def _interrupt(self, arc: Arc, when: int) -> int:
        left = self._either(arc, when)
        if self.net.nodes[arc.target].surprise:
            self.events.add(self.conditions.latest)
        return left

    def _left_over(self, node: Node, when: int) -> int:
        """When a token stays at a node that no boundary event interrupts."""
        gone = (self.when.get(arc.number, NEVER) for arc in node.outs if arc.role is Role.INTERRUPTS)
        return self.conditions.butnot(when, self.conditions.any_of(gone))

    def _choose(self, arcs: list[Arc], when: int) -> None:
        for arc in arcs[:-1]:
            when = self._either(arc, when)
        if len(arcs) > 1:
            self._decide(arcs[-1], when, self.conditions.latest)
        elif arcs:
            self.when[arcs[0].number] = when

    def _opt(self, roles: dict[Role, list[Arc]], when: int) -> None:
        """Conditional flows are independent of each other; the default is for when none is true."""
        none = when
        for arc in roles.get(Role.OPTIONAL, ()):
            choice = self.conditions.choice()
            self._decide(arc, self.conditions.taken(choice, when), choice)
            self._note_decision(Decision(arc, self.conditions.left(choice, when), taken=False), choice)
            none = self.conditions.left(choice, none)
        for arc in roles.get(Role.DEFAULT, ()):
            self.when[arc.number] = none
        if Role.OPTIONAL in roles and Role.DEFAULT not in roles and Role.ALWAYS not in roles:
            self.stopped = self.conditions.any_of((self.stopped, none))

    def _decide(self, arc: Arc, when: int, choice: int) -> None:
        self.when[arc.number] = when
        self._note_decision(Decision(arc, when), choice)

    def _note_decision(self, decision: Decision, choice: int) -> None:
        self.decisions.setdefault(choice, []).append(decision)

    # -------------------------------------------------------------- loops

    def _pass_loop(self, component: list[int]) -> None:
        members = frozenset(component)
        nodes = [self.net.nodes[number] for number in component]
        heads = [node for node in nodes if any(self.when.get(arc.number) for arc in node.ins)]
        when, vague = self._arrive_at_loop(heads)
        exits = tuple(arc for node in nodes for arc in node.outs if arc.target not in members)
        loop = Loop(members, when, vague, exits, ends=not all(node.has_flows for node in nodes))
        self.loops[self.rank[component[0]]] = loop
        for node in nodes:
            self._account(node, when)
        self._shadow(nodes, exits)
        loop.plain = when != NEVER and not vague and self._is_plain(loop, nodes, heads)
        if loop.plain or when == NEVER:
            self._exit(loop, when)
        else:
            self._leave(exits, when, vague=True)

    def _arrive_at_loop(self, heads: list[Node]) -> tuple[int, bool]:
        if len(heads) == 1:
            return self._arrive(heads[0])
        arcs = [arc for head in heads for arc in head.ins if self.when.get(arc.number)]
        found = [self.when[arc.number] for arc in arcs]
        vague = any(arc.number in self.vague for arc in arcs)
        if not vague and self.conditions.overlap(found) != NEVER:
            # Whether two tokens in one loop ever meet depends on how often each goes round.
            self._give_up(heads[0], "several tokens can come into its loop by different ways")
            vague = True
        return self.conditions.any_of(found), vague

    def _is_plain(self, loop: Loop, nodes: list[Node], heads: list[Node]) -> bool:
        """Whether a token that comes in makes one token that leaves, if ever."""
        if any(node.incomplete for node in nodes):
            self._give_up(heads[0], "an activity in its loop never completes")
            return False
        if all(_moves_one(node) for node in nodes):
            return True
        if len(heads) > 1:
            self._give_up(heads[0], "a loop with several ways in splits and joins")
            return False
        if self.depth == DEEPEST:
            self._give_up(heads[0], "loops are nested too deeply")
            return False
        loop.round = Region(
            self.net, loop.members, heads[0].number, self.steps, deadly=self.deadly, depth=self.depth + 1
        ).run()
        return self._is_plain_round(loop.round, loop)

    def _is_plain_round(self, one: Region, loop: Loop) -> bool:
        head = self.net.nodes[one.entry]
        again = (arc for arc in head.ins if arc.source in loop.members)
        ways = [arc.number for arc in (*loop.exits, *again)]
        self.undecided.extend(one.undecided)
        one.ended = one.conditions.any_of(
            (one.ended, *(one.when.get(arc.number, NEVER) for arc in loop.exits if arc.target in self.deadly))
        )
        if one.undecided or one.starved or one.crowded or not one.vague.isdisjoint(ways):
            return False
        if one.conditions.overlap(one.when.get(way, NEVER) for way in ways) == NEVER:
            return True
        self._give_up(head, "a round of its loop can leave tokens behind")
        return False

    def _exit(self, loop: Loop, when: int) -> None:
        """From outside a loop is one choice among its exits, by an event or by a condition."""
        taken = loop.round.when if loop.round is not None else {}
        exits = [arc for arc in loop.exits if loop.round is None or taken.get(arc.number, NEVER) != NEVER]
        events = [arc for arc in exits if arc.role is Role.INTERRUPTS]
        others = [arc for arc in exits if arc.role is not Role.INTERRUPTS]
        # A token that goes round for ever is not one that is gone: unless it can end inside, some exit is taken.
        last = [] if loop.ends else (others or events)[-1:]
        for arc in events:
            if arc not in last:
                when = self._interrupt(arc, when)
        for arc in others:
            if arc not in last:
                when = self._either(arc, when)
        self.when.update({arc.number: when for arc in last})


def _moves_one(node: Node) -> bool:
    """Whether each token that comes makes one that goes, whatever else there is."""
    roles = [arc.role for arc in node.outs]
    several = roles.count(Role.ALWAYS) > 1 or not _ONE_TOKEN.issuperset(roles)
    return not (several or node.joins or node.unclear)
