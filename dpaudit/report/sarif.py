"""The document as SARIF 2.1.0, for code scanning: everything that needs action, at its line of the source.

The primary location is the mechanism where its source is in the repository, otherwise the audit's definition. A fingerprint
is made of the rule, the file and name of the audit, and the channel; not of lines, seeds, counts or bounds, so the same
problem is the same alert after an edit above it or a rerun.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote

from dpaudit import __version__
from dpaudit.claims import Verdict
from dpaudit.report.document import AccuracyEntry, AnyEntry, Document, Entry
from dpaudit.report.escape import clean
from dpaudit.report.words import claim_in_words, needs_attention, outcome, verdict_in_words
from dpaudit.result.model import Result, claim_to_dict
from dpaudit.result.text import shown
from dpaudit.utility.error_claim import error_claim_to_dict
from dpaudit.utility.result import AccuracyResult

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

# id: level, name, short description, full description
RULES = {
    "privacy-violation": (
        "error",
        "PrivacyViolation",
        "The mechanism leaks more than its claim allows.",
        "On a pair of neighbouring data sets an event was found whose probabilities differ by more than the claim allows.",
    ),
    "accuracy-violation": (
        "error",
        "AccuracyViolation",
        "The mechanism is less accurate than it claims.",
        "On the data set shown the error is larger than the claim allows.",
    ),
    "unmet-expectation": (
        "error",
        "UnmetExpectation",
        "An audit ended with another verdict than the one it expects.",
        "A known leak that is no longer found, or one that was not known: see dpaudit.Audit(expect=...).",
    ),
    "inconclusive": (
        "warning",
        "Inconclusive",
        "The audit could not decide.",
        "The budget ended with too little power, or the mechanism could not be sampled. This is not a sign of privacy.",
    ),
    "could-not-run": (
        "error",
        "CouldNotRun",
        "The audit could not be run.",
        "The audit, its mechanism or its file raised an error, or its process ended. There is no verdict.",
    ),
    "regression": (
        "error",
        "Regression",
        "An audit is worse than in the baseline.",
        "The audit shows more, would detect less, or is gone: see `dpaudit run --baseline`.",
    ),
}
_ORDER = list(RULES)


def render(document: Document) -> str:
    """SARIF 2.1.0 with sorted keys; equal documents give equal files."""
    document = clean(document)
    entries = [entry for entry in document.all_entries if needs_attention(entry)]
    seen: Counter[str] = Counter()
    run = {
        "tool": {
            "driver": {
                "name": "dpaudit",
                "semanticVersion": __version__,
                "rules": [_rule(identifier) for identifier in _ORDER],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": document.complete}],
        "results": [
            *(_result(entry, seen) for entry in entries),
            *(
                _plain_result("could-not-run", f.name, f.reason, seen, path=f.path, line=f.line)
                for f in document.failures
            ),
            *(_plain_result("regression", text.partition(":")[0], text, seen) for text in document.regressions),
        ],
        "properties": {
            "alphaSpent": document.alpha_spent,
            "audits": len(document.all_entries),
            "interrupted": document.interrupted,
        },
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _rule(identifier: str) -> dict[str, Any]:
    level, name, short, full = RULES[identifier]
    properties: dict[str, Any] = {"tags": ["privacy", "differential-privacy"], "precision": "very-high"}
    if identifier == "privacy-violation":
        properties["tags"].insert(0, "security")
        properties["security-severity"] = "7.5"
    return {
        "id": identifier,
        "name": name,
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "help": {"text": f"{full} Run `dpaudit run --html report.html` for the witness, pictures and a script."},
        "defaultConfiguration": {"level": level},
        "properties": properties,
    }


def rule_of(entry: AnyEntry) -> str:
    """Return the rule of an entry that needs attention."""
    if entry.expect is not None:
        return "unmet-expectation"
    if entry.result.verdict is not Verdict.VIOLATION:
        return "inconclusive"
    return "accuracy-violation" if isinstance(entry, AccuracyEntry) else "privacy-violation"


def fingerprint(entry: AnyEntry) -> str:
    """Return an identifier that stays the same as long as the problem is the same."""
    channel = "accuracy" if isinstance(entry, AccuracyEntry) else entry.result.channel.value
    parts = [rule_of(entry), entry.path.replace("\\", "/"), entry.result.name, channel]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _result(entry: AnyEntry, seen: Counter[str]) -> dict[str, Any]:
    rule = rule_of(entry)
    mark = fingerprint(entry)
    seen[mark] += 1
    if isinstance(entry, AccuracyEntry):
        text, numbers, mechanism = _without_links(str(entry.result)), _accuracy_numbers(entry.result), {}
    else:
        text, numbers = _message(entry), _privacy_numbers(entry.result)
        mechanism = _location(entry.mechanism_path, entry.mechanism_line)
    plain: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": _ORDER.index(rule),
        "level": RULES[rule][0],
        "message": {"text": text},
        # The second is the one that GitHub reads; two equal ones differ in the number after the colon.
        "partialFingerprints": {
            "dpauditAudit/v1": f"{mark}:{seen[mark]}",
            "primaryLocationLineHash": f"{mark}:{seen[mark]}",
        },
        "properties": {
            "audit": entry.result.name,
            "verdict": str(entry.result.verdict),
            "expected": str(entry.expect or ""),
            "alpha": entry.result.alpha,
            "samples": entry.result.samples,
            "seed": str(entry.result.seed),  # may be beyond the integers of a reader in JavaScript
            **numbers,
        },
    }
    audit = _location(entry.path, entry.line)
    primary = mechanism or audit
    if primary:
        plain["locations"] = [{**primary, "logicalLocations": [{"fullyQualifiedName": entry.result.name}]}]
    if mechanism and audit:
        plain["relatedLocations"] = [{**audit, "id": 1, "message": {"text": "The audit is defined here."}}]
    return plain


def _privacy_numbers(result: Result) -> dict[str, Any]:
    return {
        "claim": claim_to_dict(result.claim),
        "epsilonLower": _number(result.epsilon_lower),
        "delta": _number(result.delta),
        "detectableEpsilon": _number(result.detectable_epsilon),
        "channel": result.channel.value,
    }


def _accuracy_numbers(result: AccuracyResult) -> dict[str, Any]:
    return {
        "claim": error_claim_to_dict(result.claim),
        "observed": result.claim.in_words(result.mean_score),
        "shown": result.claim.in_words(result.lower if result.verdict is Verdict.VIOLATION else result.upper),
    }


def _plain_result(
    rule: str, name: str, text: str, seen: Counter[str], *, path: str = "", line: int = 1
) -> dict[str, Any]:
    """A result without a verdict."""
    parts = [rule, path.replace("\\", "/"), name]
    mark = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
    seen[mark] += 1
    plain: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": _ORDER.index(rule),
        "level": RULES[rule][0],
        "message": {"text": _without_links(text if text.startswith(name) else f"{name}: {text}")},
        "partialFingerprints": {
            "dpauditAudit/v1": f"{mark}:{seen[mark]}",
            "primaryLocationLineHash": f"{mark}:{seen[mark]}",
        },
        "properties": {"audit": name},
    }
    if path:
        plain["locations"] = [{**_location(path, line), "logicalLocations": [{"fullyQualifiedName": name}]}]
    return plain


def _without_links(text: str) -> str:
    """In a message of SARIF "[text](target)" is a link (section 3.11.6); nothing here is meant as one."""
    return re.sub(r"\[(?=[^\[\]]*\]\()", r"\\[", text)


def _message(entry: Entry) -> str:
    result = entry.result
    claimed = f"Claimed {result.claim!r}: {claim_in_words(result.claim)}"
    parts = [f"{result.verdict}: {result.name}. {claimed} Shown: {shown(result)}. {verdict_in_words(result)}"]
    if entry.expect is not None:
        parts.append(f"This is {outcome(entry)}.")
    witness = result.witness
    if witness is not None:
        parts.append(
            f"Data: {witness.data}; neighbour: {witness.neighbour}. Event: {witness.event}. On data: {witness.on_data}; on "
            f"neighbour: {witness.on_neighbour}."
        )
    return _without_links("\n".join([*parts, *result.messages]))


def _number(value: float) -> float | str:
    """JSON has no infinity; as in the canonical document it is a word."""
    return value if abs(value) < float("inf") else str(value)


def _location(path: str, line: int) -> dict[str, Any]:
    if not path:
        return {}
    artifact: dict[str, Any]
    windows = PureWindowsPath(path)
    if windows.drive or PurePosixPath(path).is_absolute():
        absolute = windows.as_posix()
        artifact = {"uri": f"file://{'/' if windows.drive else ''}{quote(absolute, safe='/:')}"}
    else:
        artifact = {"uri": quote(path.replace("\\", "/"), safe="/"), "uriBaseId": "%SRCROOT%"}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": max(line, 1)}}}
