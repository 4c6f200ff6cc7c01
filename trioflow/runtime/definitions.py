"""Definitions: read, checked, compiled, stored with a version; and the programs that instances run."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from trioflow.checkpoint.records import Definition
from trioflow.errors import DefinitionNotFound, DefinitionRefused, ModelError
from trioflow.expressions import Languages
from trioflow.machine.compiler import compile_program
from trioflow.machine.program import Options, Program
from trioflow.model import Definitions, Finding, Graph, Process, errors, report
from trioflow.model.checks import check
from trioflow.runtime.closed_store import closed_store
from trioflow.runtime.unwired import unwired
from trioflow.stores.clock import Clock, SystemClock
from trioflow.values import ValueCodec
from trioflow.xml import Document, read, write

if TYPE_CHECKING:
    from trioflow.stores.port import DefinitionStore

__all__ = ["Checked", "Deployed", "Programs", "Source", "check_document", "load_document"]

Source = str | Path | bytes | Definitions
"""What can be deployed: a path to a .bpmn file, its bytes, or a built model."""

_DEFAULTS = Options()
MAX_PROGRAMS = 256
"""Compiled versions that are kept; another one is compiled again from the store when it is needed."""


@frozen(kw_only=True)
class Checked:
    """A document after reading, checking and compiling: the programs of its executable processes, and all findings."""

    content: bytes
    programs: tuple[Program, ...]
    findings: tuple[Finding, ...]


@frozen(kw_only=True)
class Deployed:
    """One deployed version of a process; ``findings`` are its warnings and violations."""

    key: str
    version: int
    name: str
    digest: str
    handler_names: tuple[str, ...]
    deployed: datetime
    findings: tuple[Finding, ...] = ()


def load_document(source: Source) -> tuple[Document, bytes]:
    """The document of a source, with its XML; a built model is written by our writer.

    Raises ``ModelError`` only for a path that cannot be read.
    """
    if isinstance(source, Definitions):
        return Document(definitions=source, findings=()), write(source)
    if isinstance(source, bytes):
        return read(source), source
    path = Path(source)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {str(path)!r}: {error.strerror or error}") from error
    return read(content, name=str(path)), content


def check_document(
    document: Document, content: bytes, languages: Languages, codec: ValueCodec, options: Options = _DEFAULTS
) -> Checked:
    """Check and compile every executable process of a document; all findings of all of them."""
    findings = list(document.findings)
    programs: list[Program] = []
    definitions = document.definitions
    if definitions is not None:
        for process in executable(definitions):
            graph = Graph.of(definitions, process)
            found = list(check(graph))
            program, refused = compile_program(graph, languages, codec, options=options)
            if program is not None:
                refused += tuple(unwired(program))
                program = None if refused else program
            findings += _without_repetitions(_unsaid(found, document.findings), _unsaid(refused, document.findings))
            if program is not None:
                programs.append(program)
    return Checked(content=content, programs=tuple(programs), findings=tuple(dict.fromkeys(findings)))


def executable(definitions: Definitions) -> list[Process]:
    """The processes to execute: all but those that say ``isExecutable="false"`` (*choice*: absent means executable)."""
    return [process for process in definitions.processes if process.is_executable is not False]


_SAME_FAULT: Mapping[str, frozenset[str]] = {
    "duplicate-id": frozenset({"duplicate-id"}),
    "missing-id": frozenset({"id-missing"}),
    "unresolved-reference": frozenset(
        {"boundary-host-missing", "default-not-outgoing", "flow-end-missing", "message-missing", "reference-unresolved"}
    ),
}
"""What the reader says of a line, and what the checks would say of the same fault in other words."""


def _unsaid(found: Iterable[Finding], by_reader: tuple[Finding, ...]) -> list[Finding]:
    """Findings, without the faults that the reader has named at the same place."""
    said = {
        (finding.position.line, rule)
        for finding in by_reader
        if finding.position is not None
        for rule in _SAME_FAULT.get(finding.rule, ())
    }
    return [each for each in found if each.position is None or (each.position.line, each.rule) not in said]


def _without_repetitions(found: list[Finding], refused: list[Finding]) -> list[Finding]:
    """What a check has already said about an element need not be said again by the compiler."""
    said = {(finding.element_id, finding.level) for finding in found}
    return found + [each for each in refused if (each.element_id, each.level) not in said]


class Programs:
    """The compiled definitions of one engine, by key and version."""

    def __init__(
        self,
        store: DefinitionStore,
        languages: Languages,
        codec: ValueCodec,
        *,
        clock: Clock | None = None,
        options: Options = _DEFAULTS,
    ) -> None:
        self._store = store
        self._clock = SystemClock() if clock is None else clock
        self._languages = languages
        self._codec = codec
        self._options = options
        self._programs: OrderedDict[tuple[str, int], Program] = OrderedDict()
        self._latest: dict[str, int] = {}

    async def deploy(self, source: Source, *, strict: bool, now: datetime) -> tuple[Deployed, ...]:
        """Read, check, compile and store; one version for each executable process.

        Raises ``DefinitionRefused`` with all findings, and then nothing was deployed.
        """
        with self._clock.held():
            document, content = await trio.to_thread.run_sync(load_document, source)
        checked = check_document(document, content, self._languages, self._codec, self._options)
        refusing = errors(checked.findings, strict=strict)
        if refusing:
            raise DefinitionRefused(f"the model cannot be deployed:\n{report(refusing)}", checked.findings)
        if not checked.programs:
            raise DefinitionRefused(
                'the document holds no executable process: remove isExecutable="false" from the one to run',
                checked.findings,
            )
        return tuple([await self._store_version(program, checked, now) for program in checked.programs])

    async def _store_version(self, program: Program, checked: Checked, now: datetime) -> Deployed:
        process = program.graph.process
        stored = await self._store.deploy(
            Definition(
                key=program.key,
                version=0,
                digest=program.digest,
                digest_algorithm=program.digest_algorithm,
                handler_names=tuple(sorted(program.handler_names)),
                content=checked.content,
                content_hash=hashlib.sha256(checked.content).hexdigest(),
                deployed=now,
                name=process.name or "",
            )
        )
        self._keep(program.key, stored.version, program)
        self._latest[program.key] = stored.version
        return _deployed(stored, checked.findings)

    async def latest(self, key: str) -> tuple[int, Program]:
        """The latest version of a process."""
        version = self._latest.get(key)
        if version is None:
            definition = await self._store.definition(key)
            if definition is None:
                raise await self._unknown(key)
            version = self._latest[key] = definition.version
        return version, await self.version(key, version)

    async def version(self, key: str, version: int) -> Program:
        """That version, compiled; from the store if it is not at hand."""
        program = self._programs.get((key, version))
        if program is not None:
            self._programs.move_to_end((key, version))
            return program
        definition = await self._store.definition(key, version)
        if definition is None:
            raise DefinitionNotFound(f"version {version} of process {key!r} is not deployed here: deploy it")
        program = self._compiled(definition)
        self._keep(key, version, program)
        return program

    def at_hand(self, key: str) -> tuple[int, Program] | None:
        """The latest version, if it is compiled already."""
        version = self._latest.get(key)
        program = None if version is None else self._programs.get((key, version))
        return None if version is None or program is None else (version, program)

    async def deployed(self) -> tuple[Deployed, ...]:
        """The latest version of each process."""
        return tuple(_deployed(definition) for definition in await self._store.definitions())

    def close(self) -> None:
        """The engine has closed: whoever still asks is told so."""
        self._store = closed_store()
        self._latest.clear()
        self._programs.clear()

    def _compiled(self, definition: Definition) -> Program:
        document = read(definition.content, name=f"{definition.key} version {definition.version}")
        checked = check_document(document, definition.content, self._languages, self._codec, self._options)
        for program in checked.programs:
            if program.key == definition.key:
                return program
        raise DefinitionNotFound(
            f"version {definition.version} of process {definition.key!r} is stored, but cannot be executed here:\n"
            f"{report(errors(checked.findings))}"
        )

    def _keep(self, key: str, version: int, program: Program) -> None:
        self._programs[(key, version)] = program
        while len(self._programs) > MAX_PROGRAMS:
            self._programs.popitem(last=False)

    async def _unknown(self, key: str) -> DefinitionNotFound:
        known = ", ".join(definition.key for definition in await self._store.definitions()) or "none"
        return DefinitionNotFound(f"no process {key!r} is deployed (deployed: {known}): deploy it, or correct the key")


def _deployed(definition: Definition, findings: tuple[Finding, ...] = ()) -> Deployed:
    return Deployed(
        key=definition.key,
        version=definition.version,
        name=definition.name,
        digest=definition.digest,
        handler_names=definition.handler_names,
        deployed=definition.deployed,
        findings=findings,
    )
