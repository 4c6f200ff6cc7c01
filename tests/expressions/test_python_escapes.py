"""Known ways out of Python sandboxes, and known ways to use up a machine: none works here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import pytest

from tests.expressions.support import failure_of, results_of, script_failure_of, value_of
from trioflow.expressions import Limits

NAMES: Final[dict[str, Any]] = {
    "x": {"a": 1},
    "xs": [1, 2, 3],
    "s": "text",
    "n": 5,
    "d": Decimal("1E+999999999"),
    "tiny": Decimal("1E-999999"),
    "f": len,
    "cls": dict,
    "mod": time,
}

ESCAPES: Final = [
    # dunder chains
    "().__class__.__bases__[0].__subclasses__()",
    "(1).__class__",
    "''.__class__.__mro__",
    "x.__class__",
    "x.__init__.__globals__",
    "x.__getattribute__('a')",
    "[].__len__()",
    "x._private",
    "x.\uff3f\uff3fclass\uff3f\uff3f",
    "\uff3f\uff3fnames",
    "__names",
    "__run",
    "__run.limits",
    "__import__('os')",
    "__builtins__",
    "__f_len",
    "[__run for x in xs]",
    "[1 for __run in xs]",
    "[1 for __names in [x]]",
    "sorted(xs, key=lambda __run: 1)",
    # builtins
    "eval('1')",
    "exec('1')",
    "compile('1', '', 'eval')",
    "open('/etc/passwd')",
    "input()",
    "breakpoint()",
    "globals()",
    "locals()",
    "vars()",
    "dir()",
    "type(x)",
    "type('X', (), {})",
    "object()",
    "getattr(x, '__class__')",
    "setattr(x, 'a', 1)",
    "isinstance(x, dict)",
    "super()",
    "memoryview(b'')",
    "id(x)",
    "hash(x)",
    "print(x)",
    "map(str, xs)",
    "filter(None, xs)",
    "iter(xs)",
    "next(xs)",
    "bytes(10 ** 9)",
    "bytearray(10 ** 9)",
    "callable(x)",
    "BpmnError('a')",
    # formats
    "'{0.__class__}'.format(x)",
    "'{0.__class__}'.format_map(x)",
    "str.format('{0.__class__}', x)",
    "f'{x.__class__}'",
    "f'{x!r.__class__}'",
    "f'{x:{x.__class__}}'",
    "'%s' % x",
    "'%(a)s' % x",
    "'%1000000000d' % 1",
    "b'%d' % 1",
    "s.translate({116: 'x' * 10})",
    "s.encode('rot13')",
    # generators, frames, tracebacks
    "(y for y in xs)",
    "(y for y in xs).gi_frame",
    "(y for y in xs).gi_frame.f_back.f_globals",
    "[g for g in [(y for y in xs)]]",
    "len(y for y in xs)",
    "list((y for y in xs), 1)",
    "[y async for y in xs]",
    "[await y for y in xs]",
    "(yield 1)",
    "(lambda: 1)()",
    "lambda: 1",
    "[lambda y: y][0](1)",
    "sorted(xs, key=lambda *a: a)",
    "sorted(xs, key=lambda a=x: a)",
    "sorted(xs, key=lambda a, b: a)",
    "sorted(xs, key=len)",
    "sorted(xs, key=f)",
    "max(xs, key=cls)",
    # assignment and scope
    "(y := 1)",
    "[y := z for z in xs]",
    "[(x := 5) for _ in xs]",
    "[0 for x.a in xs]",
    "[0 for xs[0] in xs]",
    "x = 1",
    "del x",
    "import os",
    # calls
    "max(*xs)",
    "dict(**x)",
    "dict(__class__=1)",
    "max(xs, _key=1)",
    "f(xs)",
    "cls()",
    "mod.sleep(9)",
    "mod.time",
    "f.__self__",
    "xs[0](1)",
    "(len)(xs)()",
    "len.__call__(xs)",
    "str.upper('a')",
    "dict.fromkeys('ab')",
    "datetime.now()",
    "date.today()",
    "Decimal.from_float(1.5)",
    "now().tzinfo",
    "now().__reduce__()",
    "now().strftime('%1000000000d')",
    "f'{now():%999999999Y}'",
    # changing data
    "xs.append(1)",
    "xs.sort()",
    "x.update(a=2)",
    "x.pop('a')",
    "x.setdefault('b', 1)",
    "xs.clear()",
    "[xs.pop() for _ in xs]",
    # other syntax
    "x @ x",
    "1j",
    "...",
    "x is xs",
    "xs is []",
    "[*x for x in xs]",
    "{**xs}",
    "*xs",
    "print",
    "f'{x!a}'",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_escape_is_refused(text: str) -> None:
    """The text is refused, or fails, as an ExpressionError; the data is as it was."""
    failure_of(text, NAMES)
    assert NAMES["x"] == {"a": 1}
    assert NAMES["xs"] == [1, 2, 3]


BOMBS: Final = [
    ("9**9**9", "max_int_bits"),
    ("2 ** 10**6", "max_int_bits"),
    ("(-2) ** 10**9", "max_int_bits"),
    ("1 << 10**9", "max_int_bits"),
    ("sum(1 << (y * 1000) for y in range(9))", "max_int_bits"),
    ("(10 ** 1000) * (10 ** 1000)", "max_int_bits"),
    ("0x" + "f" * 2000, None),
    ("9" * 5000, None),
    ("int('9' * 10**6)", "max_int_bits"),
    ("int('f' * 4000, 16)", "max_int_bits"),
    ("float('1' * 10**6)", "max_int_bits"),
    ("Decimal('1' * 10**6)", "max_int_bits"),
    ("int(d)", "max_int_bits"),
    ("round(d)", "max_int_bits"),
    ("round(1, -10**9)", None),
    ("f'{d:f}'", "max_int_bits"),
    ("f'{tiny:f}'", "max_int_bits"),
    ("f'{d:,}'", "max_int_bits"),
    ("d * d", None),
    ("Decimal(10) ** 10**9", None),
    ("'a' * 10**8", "max_size"),
    ("10**8 * 'a'", "max_size"),
    ("10**1000 * [0]", "max_size"),
    ("[0] * 10**9", "max_size"),
    ("(0,) * 10**9", "max_size"),
    ("b'a' * 10**9", "max_size"),
    ("'a' * 600_000 + 'b' * 600_000", "max_size"),
    ("list(range(10**9))", "max_size"),
    ("range(10**30)", "max_size"),
    ("range(-10**30, 0, 3)", "max_size"),
    ("[y for y in range(10**6)]", "max_turns"),
    ("[0 for a in range(1000) for b in range(1000)]", "max_turns"),
    ("sum(1 for a in range(1000) for b in range(1000))", "max_turns"),
    ("[[0 for b in range(1000)] for a in range(1000)]", "max_turns"),
    ("sorted(range(200_000))", "max_turns"),
    ("('a' * 1000).join(['b' * 1000] * 1000)", "max_size"),
    ("('a' * 10**6).join('a' * 1000)", "max_size"),
    ("('a' * 10**4).replace('a', 'b' * 10**4)", "max_size"),
    ("('a' * 10**4).replace('', 'b' * 10**4)", "max_size"),
    ("'a'.zfill(10**9)", "max_size"),
    ("'a'.center(10**9)", "max_size"),
    ("'a'.ljust(10**9)", "max_size"),
    ("'a'.rjust(10**9)", "max_size"),
    ("'a'.expandtabs(10**9)", None),
    ("f'{1:>1000000000}'", "max_width"),
    ("f'{1:{10**9}}'", "max_width"),
    ("f'{1.5:.1000000000f}'", "max_width"),
    ("f\"{1:{'9' * 10**6}}\"", "max_width"),
    ("f'{1:n}'", None),
    ("f\"{'a' * 10**6}{'a' * 10**6}\"", "max_size"),
    ("now().strftime('%Y' * 1000)", "max_width"),
    ("[[[[[[[xs * 9] * 9] * 9] * 9] * 9] * 9] * 9] * 9", "max_size"),
    ("str([[[[[[[xs * 9] * 9] * 9] * 9] * 9] * 9] * 9])", "max_size"),
    ("f'{[[[[[[[xs * 9] * 9] * 9] * 9] * 9] * 9] * 9]}'", "max_size"),
    ("[[[[[[[xs * 9] * 9] * 9] * 9] * 9] * 9] * 9] == [[[[[[[xs * 9] * 9] * 9] * 9] * 9] * 9] * 9]", "max_size"),
    ("{(((((((n,) * 9,) * 9,) * 9,) * 9,) * 9,) * 9,) * 9}", "max_size"),
    ("sorted([[[[[[[[xs * 9] * 9] * 9] * 9] * 9] * 9] * 9]] * 2)", "max_size"),
    ("sorted(xs, key=lambda y: [[[[[[[xs * 9] * 9] * 9] * 9] * 9] * 9] * 9])", "max_size"),
    ("sorted(xs, key=lambda y: [z for z in range(90_000)])", "max_turns"),
    ("[*range(60_000), *range(60_000)]", "max_turns"),
    ("(" * 10_000 + "1" + ")" * 10_000, None),
    ("(" * 150 + "1" + ")" * 150, None),
    ("[" * 150 + "]" * 150, "max_nesting"),
    ("not " * 10_000 + "1", "max_nesting"),
    ("-" * 30_000 + "1", "max_nesting"),
    ("+".join(["1"] * 20_000), "max_nesting"),
    ("x" + ".a" * 20_000, "max_nesting"),
    ("1 if n else " * 3_000 + "1", "max_nesting"),
    ("1" + " " * 70_000, "max_source"),
]


SECONDS: Final = 20.0
"""Of processor time: many times what each bomb takes, for a busy machine; without limits most would take for ever."""


@pytest.fixture
def in_time() -> Iterator[None]:
    """A bomb that is taken apart costs seconds at most."""
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS


@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("text,limit", BOMBS, ids=[text[:60] for text, _ in BOMBS])
def test_bomb_fails_within_the_limits(text: str, limit: str | None) -> None:
    """The text fails as an ExpressionError that names the limit, before anything large is made."""
    if text.startswith("((") and len(text) < 1_000:
        assert value_of(text) == 1  # brackets alone are no level of the tree
        return
    error = failure_of(text, NAMES)
    assert error.limit == limit
    if limit is not None:
        assert limit in str(error)


SCRIPT_BOMBS: Final = [
    ("while True:\n  pass", "max_turns"),
    ("while True:\n  continue", "max_turns"),
    ("a = [1]\nfor y in a:\n  a.append(y)", "max_turns"),
    ("a = [1]\nb = [a.append(y) for y in a]", "max_turns"),
    ("a = [1]\na.extend(y for y in a)\nwhile True:\n  a.extend(a)", "max_turns"),
    ("a = 'x'\nwhile True:\n  a += a", "max_size"),
    ("a = [1]\nwhile True:\n  a = a + a", "max_size"),
    ("a = 3\nwhile True:\n  a = a * a", "max_int_bits"),
    ("a = []\nwhile True:\n  a = [a, a]", "max_turns"),
    ("a = []\nfor y in range(60):\n  a = [a, a]", "max_size"),
    ("a = []\nfor y in range(60):\n  a = [a, a]\nb = a == [a[0], a[0]]", "max_size"),
    ("a = ()\nfor y in range(60):\n  a = (a, a)\nb = {a: 1}", "max_size"),
    ("a = []\na.append(a)", "max_size"),
    ("a = []\nfor y in range(5_000):\n  a = [a]", "max_nesting"),
    ("a = []\nfor y in range(90_000):\n  a = [a]\nb = 1 if str(a) else 0", None),
    ("a = []\nb = []\nfor y in range(40_000):\n  a = [a]\n  b = [b]\nc = a == b\na = b = 0", None),
    ("a = []\nfor y in range(99_999):\n  a.append('x' * 1_000_000)", "max_turns"),
    ("a = []\nfor y in range(99_999):\n  a.append([0] * 1_000_000)", "max_turns"),
    ("a = ['x' * 900_000, 'x' * 899_999 + 'x']\nwhile a[0] == a[1]:\n  pass", "max_turns"),
    ("a = list(range(90_000))\nwhile -1 not in a:\n  pass", "max_turns"),
    ("for y in range(90_000):\n" + "  a = 1\n" * 200, "max_turns"),
    ("a = {}\nfor y in range(99_999):\n  a[y] = [0] * 1_000", "max_turns"),
    ("a = Decimal('1' * 4_000)\nwhile True:\n  b = a * a", "max_turns"),
    ("a = 3 ** 2500\nwhile True:\n  b = str(a)", "max_turns"),
    ("a = 1\n" * 20_000, "max_source"),
]


@pytest.mark.parametrize("text,limit", SCRIPT_BOMBS, ids=[text[:60] for text, _ in SCRIPT_BOMBS])
def test_script_bomb_fails_within_the_limits(text: str, limit: str | None) -> None:
    """Whatever a script lets grow ends in an ExpressionError, within seconds and megabytes."""
    start = time.process_time()
    assert script_failure_of(text).limit == limit
    assert time.process_time() - start < SECONDS


def test_limits_cannot_be_caught() -> None:
    """No statement of a script catches anything."""
    for clause in ("except:", "except Exception:", "except* ValueError:", "finally:"):
        assert "cannot catch" in str(script_failure_of(f"try:\n  a = 9**9**9\n{clause}\n  a = 1"))


def test_small_limits_are_kept() -> None:
    """The limits are those of the engine, not constants."""
    assert failure_of("'a' * 11", limits=Limits(max_size=10)).limit == "max_size"
    assert failure_of("1 + (2 + (3 + 4))", limits=Limits(max_nesting=3)).limit == "max_nesting"
    assert failure_of("[y for y in '12345']", limits=Limits(max_turns=4)).limit == "max_turns"
    assert script_failure_of("for y in '12345': pass", limits=Limits(max_turns=4)).limit == "max_turns"
    assert results_of("for y in '12345': pass", limits=Limits(max_turns=5)) == {"y": "5"}


def test_record_keys_are_data_only() -> None:
    """Entries with names like Python's own are entries, and nothing else."""
    record = {"__class__": "entry", "keys": 1, "items": 2}
    assert value_of("x['__class__']", {"x": record}) == "entry"
    assert value_of("x.items", {"x": record}) == 2
    assert value_of("x.keys()", {"x": record}) == ["__class__", "keys", "items"]


def test_hostile_objects_stay_closed() -> None:
    """An object of an unknown type in the data offers nothing: no attribute, no method, no operator."""

    class Hostile:
        secret = "s"

        def reveal(self) -> str:
            return self.secret

        def __add__(self, other: object) -> str:
            return self.secret

    for text in ("h.secret", "h.reveal()", "h + 1", "h[0]", "len(h)", "[y for y in h]", "f'{h:x}'", "-h"):
        failure_of(text, {"h": Hostile()})
