"""``assert_private``: check the exact law of the code, audit by samples, and raise an error if either refutes the claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpaudit.claims import Claim, Verdict
from dpaudit.engine.audit import audit, name_of, with_options_of_audit
from dpaudit.engine.session import current
from dpaudit.errors import Inconclusive, PrivacyViolation
from dpaudit.neighbours import Neighbours
from dpaudit.result.model import Result, with_note


@with_options_of_audit
def assert_private(
    mechanism: Any,
    claim: Claim,
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    *,
    allow_inconclusive: bool = False,
    exact_first: bool = True,
    name: str | None = None,
    **options: Any,
) -> Result:
    """Audit, and raise an error if a violation is found or nothing could be decided; otherwise return the result.

    Before any sample is drawn, the exact output law of an ordinary function is extracted from its code where that takes less
    than a second (see :func:`dpaudit.verify`). If it refutes the claim, and the running code agrees, that is the result:
    exact, with pair and event. Otherwise the audit by samples goes on, and a note says what was verified exactly.

    The errors are :class:`~dpaudit.errors.PrivacyViolation`, with the witness, and :class:`~dpaudit.errors.Inconclusive`.

    Inside pytest it is part of the run: it has the run's options, and a share of the run's alpha unless it names its own.

    Parameters
    ----------
    mechanism, claim, neighbours, name
        As for :func:`audit`.
    allow_inconclusive
        Return an INCONCLUSIVE result instead of raising.
    exact_first
        Check the exact law of the code first; False: audit by samples alone.
    **options
        All other keywords of :func:`audit`.

    Raises
    ------
    PrivacyViolation
        The claim is refuted; an ``AssertionError`` that prints the witness.
    Inconclusive
        The audit could not decide; the message says why, and what to change.

    Examples
    --------
    >>> import dpaudit
    >>> noisy = dpaudit.batched(lambda data, size, rng: len(data) + rng.laplace(size=size))
    >>> result = dpaudit.assert_private(noisy, dpaudit.PureDP(1.0), [([], [1])], samples=100_000)
    >>> result.verdict
    <Verdict.NO_VIOLATION_FOUND: 'NO_VIOLATION_FOUND'>
    >>> print(*result.messages)
    Exact, over the reals, from the code: 1 pair of data sets keeps the claim.
    """
    around = current()
    if around is not None:
        name, options = around.options(name, options)
    result, note = None, ""
    if exact_first:
        from dpaudit.symbolic.first_look import look

        result, note = look(mechanism, claim, neighbours, name=name or name_of(mechanism), **options)
    if result is None:
        result = with_note(audit(mechanism, claim, neighbours, name=name, **options), note)
    if around is not None:
        around.finished(result)
        allow_inconclusive = allow_inconclusive or around.allows_inconclusive()
    if result.verdict is Verdict.VIOLATION:
        raise PrivacyViolation(str(result), result)
    if result.verdict is Verdict.INCONCLUSIVE and not allow_inconclusive:
        raise Inconclusive(str(result), result)
    return result
