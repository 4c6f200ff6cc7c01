"""The cases of the suite that must be refused: each breaks one rule of the standard, which a finding has to name.

`EXPECTED` says which of our rules names it.  It was written from the texts of the suite's rules and, where it has none,
from what the files are called and what is wrong in them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from trioflow.model import Finding, check, errors
from trioflow.xml import read

__all__ = ["EXPECTED", "Constraint", "constraints", "expected", "findings_of", "refusing"]

EXPECTED: Mapping[str, frozenset[str]] = {
    key: frozenset(rules.split())
    for key, rules in {
        # ids, texts, references of a document
        "EXT.002": "duplicate-id",
        "EXT002_1_Fail_missing_ID": "missing-id id-missing",
        "EXT.003": "missing-id id-missing",
        "EXT.004": "not-a-media-type",
        "EXT.010": "not-a-media-type",
        "EXT.014": "not-a-uri",
        "EXT.060": "not-a-uri",
        "EXT.145": "not-a-media-type",
        "REF_1": "carried-reference-unresolved",  # messageRef of a message flow
        "REF_2": "carried-reference-unresolved",  # itemRef of a message
        "REF_3": "flow-end-missing",
        "REF_4": "default-not-outgoing",
        "REF_5": "carried-reference-unresolved",  # interfaceRef of a participant
        "REF_6": "carried-reference-unresolved",  # participantRef of a partner
        "REF_7": "message-flow-end",
        "REF_8": "reference-unresolved",  # operationRef of a send task
        "REF_9": "io-set-unresolved",
        "REF_10": "io-set-unresolved",
        "REF_11": "reference-unresolved",  # both ends of data associations
        "REF_12": "event-definition-unresolved",
        "REF_13": "boundary-host-missing",
        "REF_14": "link-reference-wrong",
        "REF_15": "carried-reference-unresolved",  # definitionalCollaborationRef
        "REF_16": "reference-unresolved",  # correlationPropertyRef
        "REF_17": "carried-reference-unresolved",  # errorRef of an operation
        # artifacts, sequence flows
        "EXT.006": "flow-end-missing",
        "EXT.007": "flow-end-missing",
        "EXT.021": "event-sub-process-with-flows",
        "EXT.022": "event-sub-process-with-flows",
        "EXT.023": "flow-unlisted",
        "EXT.024": "flow-not-immediate",
        "EXT.025": "lone-conditional-flow",
        "EXT.026": "default-not-outgoing",
        "EXT.028": "flow-end-missing flow-across-scopes",
        "EXT.150": "node-unreachable",
        "EXT.151": "node-without-outgoing",
        "EXT.152": "flow-across-scopes",
        # expressions
        "EXT.012": "expression-informal",
        "EXT.013": "expression-empty",
        "EXT.071": "condition-not-boolean",
        "EXT.072": "condition-not-boolean",
        "EXT.132": "timer-not-a-time",
        "EXT.133": "timer-not-a-time",
        "EXT.134": "timer-not-a-time",
        # collaborations, choreographies, conversations
        "EXT.008": "message-flow-end",
        "EXT.009": "message-flow-end",
        "EXT.027": "choreography-referred",
        "EXT.029": "participant-multiplicity",
        "EXT.030": "participant-multiplicity",
        "EXT.031": "message-flow-in-pool",
        "EXT.032": "global-conversation-content",
        "EXT.033": "choreography-closed-otherwise",
        "EXT.036": "not-executable",  # a choreography's element in a process
        "EXT.056": "not-executable",
        "EXT.102": "message-flow-out",
        "EXT.103": "message-flow-in",
        "EXT.108": "message-flow-in",
        "EXT.109": "message-flow-out",
        "EXT119_1_failure_catchInOut": "message-flow-out",
        "EXT119_2_failure_catchOutgoing": "message-flow-out",
        "EXT119_3_failure_throwIncoming": "message-flow-in",
        "EXT119_4_failure_throwInOut": "message-flow-in",
        # activities
        "EXT.035": "public-executable",
        "EXT.037": "start-quantity",
        "EXT.038": "completion-quantity",
        "EXT.039": "resource-role",
        "EXT.040": "resource-role",
        "EXT.041": "duplicate-element",  # two kinds of loop
        "EXT.054": "duplicate-element",
        "EXT.055": "duplicate-element",
        "EXT.049": "receive-start-with-incoming",
        "EXT.053": "script-format-missing",
        "EXT.057": "event-sub-process-with-flows",
        "EXT.058": "event-sub-process-starts",
        "EXT.061": "ad-hoc-empty",
        "EXT.062": "ad-hoc-start-or-end",
        "EXT062_2_failure_chorActivity": "not-executable",
        "EXT.067": "multi-instance-unbounded",
        "EXT.099": "call-without-none-start",
        # data
        "EXT.020": "collection-contradicted",
        "EXT.042": "operation-sets",
        "EXT.043": "operation-sets",
        "EXT.044": "operation-items",
        "EXT.045": "operation-items",
        "EXT.046": "message-sets",
        "EXT.047": "message-sets",
        "EXT.048": "message-items",
        "EXT.050": "message-sets",
        "EXT.051": "message-sets",
        "EXT.052": "message-items",
        "EXT.063": "call-data",
        "EXT.064": "interface-binding-missing",
        "EXT.065": "interface-binding-items",
        "EXT.068": "multi-instance-collection-unresolved",
        "EXT.069": "multi-instance-collection-items",
        "EXT.070": "multi-instance-collection-items",
        "EXT.076": "data-reference-name",
        "EXT.077": "collection-contradicted",
        "EXT.078": "misplaced-element",  # a property at the root
        "EXT.079": "sub-process-io",
        "EXT.080": "data-association-direction",
        "EXT.081": "collection-contradicted",
        "EXT.082": "data-association-direction",
        "EXT.083": "collection-contradicted",
        "EXT.084": "data-unlisted",
        "EXT.085": "io-set-optional-unlisted",
        "EXT.086": "io-set-optional-unlisted",
        "EXT.087": "io-set-pairing",
        "EXT.088": "data-unlisted",
        "EXT.089": "io-set-optional-unlisted",
        "EXT.090": "io-set-optional-unlisted",
        "EXT.091": "data-association-items",
        "EXT.092": "data-association-sources",
        "EXT.093": "event-data-count",
        "EXT.094": "event-data-items",
        # events
        "EXT.011": "escalation-code-missing",
        "EXT.059": "event-kind-misplaced",
        "EXT.095": "event-definition-shared",
        "EXT.096": "start-with-incoming",
        "EXT.097": "end-without-start",
        "EXT.098": "event-kind-misplaced",
        "EXT.100": "event-kind-misplaced",
        "EXT.101": "start-without-outgoing",
        "EXT.104": "end-with-outgoing",
        "EXT.105": "start-without-end",
        "EXT.106": "cancel-outside-transaction",
        "EXT.107": "end-without-incoming",
        "EXT.110": "event-kind-misplaced",
        "EXT110_5_failure_noCancel_compensate": "compensation-boundary-non-interrupting event-kind-misplaced",
        "EXT.111": "cancel-outside-transaction",
        "EXT.112": "boundary-with-incoming",
        "EXT.113": "boundary-without-outgoing",
        "EXT.114": "compensation-boundary-with-flow",
        "EXT.115": "intermediate-without-incoming",
        "EXT.116": "intermediate-without-outgoing",
        "EXT.117": "link-with-flow",
        "EXT.118": "link-without-target",
        "EXT.120": "cancel-outside-transaction",
        "EXT.121": "event-kind-misplaced",
        "EXT.122": "event-kind-misplaced",
        "EXT123_1_failure_emptyCondition": "condition-missing expression-empty",
        "EXT123_2_failure_noFormalCondition": "expression-informal",
        "EXT.124": "link-without-source",
        "EXT.125": "link-without-target",
        "EXT.126": "link-without-target link-reference-wrong",
        "EXT.127": "message-ref-missing catch-without-message throw-without-message",
        "EXT.128": "operation-ref-missing",
        "EXT.129": "event-kind-misplaced",
        "EXT.130": "event-kind-misplaced",
        "EXT.131": "timer-not-one",
        "EXT.143": "compensation-boundary-without-handler",
        "EXT.144": "compensation-handler-unmarked",
        "EXT.146": "event-kind-misplaced",
        "EXT.147": "event-kind-misplaced",
        "EXT147_5_failure_noCancel_compensate": "compensation-boundary-non-interrupting event-kind-misplaced",
        "EXT.148": "event-kind-misplaced",
        "EXT.149": "event-kind-misplaced",
        # gateways
        "EXT.017": "gateway-direction",
        "EXT.018": "gateway-direction",
        "EXT.019": "gateway-direction",
        "EXT.135": "gateway-pointless",
        "EXT.136": "event-gateway-too-few",
        "EXT.137": "condition-after-event-gateway",
        "EXT.138": "event-gateway-target",
        "EXT.139": "event-gateway-mixed",
        "EXT.140": "event-gateway-boundary",
        "EXT.141": "event-gateway-other-way-in",
        "EXT.142": "event-gateway-start-with-incoming",
    }.items()
}
"""The name of a case, or else the number of its rule, to the rules of ours any of which says what is wrong."""


@frozen(kw_only=True)
class Constraint:
    """A file that must not be accepted: ``rule`` is the number of what it breaks, as the suite counts."""

    name: str
    rule: str
    file: Path

    @property
    def keys(self) -> tuple[str, str]:
        """Where `EXPECTED` may have it, the more exact one first."""
        return self.name, self.rule


def constraints(where: Path) -> tuple[Constraint, ...]:
    """The cases of the suite that only have to be refused, in its order."""
    entries = json.loads((where / "cases.json").read_bytes())
    return tuple(
        Constraint(
            name=entry["name"],
            rule=entry["feature_set"].replace("EXT", "EXT."),
            file=where / entry["file"],
        )
        for entry in entries
        if entry["expect"]["error"] == "ERROR_deployment"
    )


def expected(constraint: Constraint) -> frozenset[str]:
    """The rules of ours that name what the file breaks; empty if the table does not know it."""
    return next((EXPECTED[key] for key in constraint.keys if key in EXPECTED), frozenset())


def findings_of(file: Path) -> tuple[Finding, ...]:
    """What the reader and the checks say about a file."""
    document = read(file)
    checked = check(document.definitions) if document.definitions is not None else ()
    return (*document.findings, *checked)


def refusing(file: Path) -> tuple[Finding, ...]:
    """The findings for which a strict registration refuses the file."""
    return errors(findings_of(file), strict=True)
