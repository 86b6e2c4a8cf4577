"""Mutation benchmark: which wrong versions of the reference mechanisms an audit catches, and which it cannot.

    python -m benchmarks mutation [--quick] [--json FILE]

Mutants are made by rewriting code (:mod:`.rewriting`), by wrappers around sampler and law (:mod:`.behaviours`) and by
parameters; each comes with its exact law, so that its true epsilon and the samples that the best event on the best pair
would need are known (:mod:`.judging`, :mod:`.best_event`). A mutant whose generator is seeded alike in every call is
caught if the audit refuses it; a refusal of any other mutant is a fault. Rule: of the mutants that the best event would
expose with 60,000 samples, 95 % are caught with 300,000 and the pair searched; no harmless one is flagged.
"""

from benchmarks.mutation.running import run

__all__ = ["run"]
