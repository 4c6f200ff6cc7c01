"""The form of texts that the standard gives a form: URIs and media types."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trioflow.model.activities import GlobalScriptTask, ScriptTask, Transaction
from trioflow.model.base import Expression
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import described, walk
from trioflow.model.findings import Level
from trioflow.model.flow import TextAnnotation
from trioflow.model.process import Definitions

__all__ = ["RULES"]

_URI = re.compile(r"(?:[\w\-.~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+\-]+/[\w!#$&^.+\-]+(?:\s*;.*)?")


def not_uri(definitions: Definitions) -> Iterator[Problem]:
    """Languages and transaction methods are URIs (8.4.7, 10.3.5)."""
    for element in walk(definitions):
        match element:
            case Expression(language=text) if text:
                what = "language"
            case Transaction(method=text):
                what = "method"
            case _:
                continue
        if not _URI.fullmatch(text):
            yield Problem(element, f"The {what} {text!r} of {described(element)} is no URI.", "Write a valid URI.")


def not_media_type(definitions: Definitions) -> Iterator[Problem]:
    """The format of a text annotation or script is a media type (8.4.1, 10.3.3)."""
    for element in walk(definitions):
        match element:
            case TextAnnotation(text_format=text):
                pass
            case ScriptTask(script_format=text) | GlobalScriptTask(script_language=text):
                pass
            case _:
                continue
        if text and not _MEDIA_TYPE.fullmatch(text):
            yield Problem(element, f"Its format {text!r} is no media type.", "Write one, such as text/x-python.")


RULES: Table[Definitions] = (
    Rule("not-a-uri", Level.VIOLATION, "8.4.7", not_uri),
    Rule("not-a-media-type", Level.VIOLATION, "10.3.3", not_media_type),
)
"""Rules about the form of texts, over the whole document."""
