"""Run the accuracy checks of audit files, one after the other, before the privacy audits of a run."""

from __future__ import annotations

from collections.abc import Iterator

from dpaudit._util.surroundings import engine_state
from dpaudit.claims import Verdict
from dpaudit.cli.jobs import Interrupts, failure_of
from dpaudit.cli.plan import RunPlan
from dpaudit.report.document import AccuracyEntry, Failure


def run_accuracy(plan: RunPlan, interrupts: Interrupts) -> Iterator[AccuracyEntry | Failure]:
    """Run the accuracy checks of a plan; whatever one raises is the reason why it has no result.

    Parameters
    ----------
    plan : RunPlan
        The checks, with the options of each, its share of alpha included.
    interrupts : Interrupts
        Says whether a KeyboardInterrupt may come from outside of the check.
    """
    for item in plan.accuracy:
        try:
            with engine_state():
                result = item.audit.run(**plan.options[item.audit.name])
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and interrupts.possible:
                raise
            yield failure_of(item, error)
        else:
            expect = item.audit.expect if isinstance(item.audit.expect, Verdict) else None
            yield AccuracyEntry(result=result, expect=expect, path=item.path, line=item.line)
