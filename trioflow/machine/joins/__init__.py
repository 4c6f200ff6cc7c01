"""Joins: where tokens wait for other tokens, what they wait for, and how a join that can never fire is found.

A join holds a queue per incoming flow and scope instance.  Four kinds, each a *rule* (``joins.rules``):

* **parallel** (13.4.1) fires when every flow has a token, and consumes one of each;
* **inclusive** (13.4.3): ``joins.inclusive``;
* **complex** (13.4.5), in two phases: ``joins.complex``;
* **start quantity** (13.3.2): an activity starts when so many tokens wait at it, whatever flows they came by.

The last to arrive goes on, the others end, its lineage is not rewritten.  What is left waits for the next firing.

*Ways* are sequence flows and links, inside one scope, whatever conditions stand at them, and never through the join
itself.  A token in a child scope stands at the node that hosts it.  From a host a way leads to its boundary events too:
a token *can* come there, but need not.  So such ways count where a token could still serve a join, and where it holds
an inclusive one back, never where it would release it.

**Who is looked at.**  To look at every join after every step would be quadratic in a fan-out.  So a join remembers for
each thing that it *wants* one node whose tokens can bring it, the *holder*: a parallel join for each missing flow, an
inclusive one for what holds it back and for what can still come.  It is looked at again only when the last token leaves
a holder, when tokens are taken out of it, or when a first token on one of its flows can change the answer.

**Stuck** is a join whose wants nobody can bring any more.  A token that waits at a join can serve another one only if
its own can still be served.  So a join that finds no free token is in doubt together with all that counted on it, and
the least fixed point decides: joins that merely wait for each other are stuck together.  Who is stuck already is
nobody's holder, and is not decided again until a token comes out of a stuck join before it: nothing else can bring it
back to life, because what the tokens of a scope can reach never grows but there.  (Whoever starts a token out of
nothing, in an ad-hoc sub-process, says so: ``doubt_all``.)
"""

from __future__ import annotations

from trioflow.machine.joins.complex import Complex, flows_on_activation, reconsider
from trioflow.machine.joins.inclusive import BLOCKER, HOPE, INCLUSIVE, awaited
from trioflow.machine.joins.looking import (
    derive,
    doubt_all,
    fire_with_what_is_there,
    index,
    look_again,
    settle,
)
from trioflow.machine.joins.parallel import PARALLEL, arrive
from trioflow.machine.joins.quantity import QUANTITY, gather
from trioflow.machine.joins.queues import clear, line_up, surrender, vacated, withdraw
from trioflow.machine.joins.rules import JoinRule, missing, rule_of

__all__ = [
    "BLOCKER",
    "HOPE",
    "INCLUSIVE",
    "PARALLEL",
    "QUANTITY",
    "Complex",
    "JoinRule",
    "arrive",
    "awaited",
    "clear",
    "derive",
    "doubt_all",
    "fire_with_what_is_there",
    "flows_on_activation",
    "gather",
    "index",
    "line_up",
    "look_again",
    "missing",
    "reconsider",
    "rule_of",
    "settle",
    "surrender",
    "vacated",
    "withdraw",
]
