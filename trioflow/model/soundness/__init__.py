"""Soundness: what tokens can come to in a process, decided from its flows alone, at registration.

``rules`` are the findings, ``analysis`` gives a verdict about each scope, ``net`` is what it looks at.
"""

from __future__ import annotations

from trioflow.model.soundness.analysis import Verdict, analyse
from trioflow.model.soundness.judge import Flaw, Kind
from trioflow.model.soundness.rules import RULES, findings

__all__ = ["RULES", "Flaw", "Kind", "Verdict", "analyse", "findings"]
