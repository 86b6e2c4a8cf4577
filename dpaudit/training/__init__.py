"""Audits of training with canaries: one step, many runs, one run.

- :func:`audit_training` puts canaries into the training data, trains, and bounds epsilon
- :func:`blank`, :func:`mislabelled`, :func:`gradient` make canaries
"""

from dpaudit.training.audit import TrainingAudit, audit_training
from dpaudit.training.canaries import blank, gradient, mislabelled

__all__ = ["TrainingAudit", "audit_training", "blank", "gradient", "mislabelled"]
