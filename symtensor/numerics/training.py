r"""Training of a model and of its linearisation by the same discrete updates, and what lies between the two.

The model F(theta)(x) is any JAX function of a pytree theta and one input x. Its linearisation at theta(0) is trained by
the same rule with the same batches; nothing continuous in time is involved. Both are compared as functions: `train` for one
model, `width_scan` for a family of models by their width n, with learning rates eta_0 n^alpha.

References: Shem-Ur & Oz, arXiv 2401.04013; weak_correlations.md, sections 1, 3, 7.
"""

from __future__ import annotations

from symtensor.numerics._ensemble import MemoryCapError
from symtensor.numerics._training_input import LOSSES, TrainingError
from symtensor.numerics._training_result import Decay, Stop, TrainingResult, fit_decay
from symtensor.numerics._training_run import TrainingWarning, train, training_draws
from symtensor.numerics._training_scan import ScanSlope, WidthScan, width_scan

__all__ = [
    "LOSSES",
    "Decay",
    "MemoryCapError",
    "ScanSlope",
    "Stop",
    "TrainingError",
    "TrainingResult",
    "TrainingWarning",
    "WidthScan",
    "fit_decay",
    "train",
    "training_draws",
    "width_scan",
]
