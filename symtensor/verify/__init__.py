"""Measured evidence about stochastic bounds: a verdict among consistent, not tight, violated and inconclusive.

`verify_bound` draws from a sampler, `verify_samples` takes data; `measure_rates` gives the error rates of the protocol
for a known law. The protocol and its limits: docs/verify.md.
"""

from __future__ import annotations

from symtensor.verify.data import Table, read_csv
from symtensor.verify.errors import (
    ClaimError,
    DataError,
    DataWarning,
    SamplerError,
    SizesError,
    StoreError,
    StructuredGridWarning,
    VerificationError,
)
from symtensor.verify.laws import LAWS, Law
from symtensor.verify.rates import Rates, SequentialRates, measure_rates, measure_sequential
from symtensor.verify.result import Jump, LevelResult, RefusedLevel, Verification
from symtensor.verify.run import verify_bound, verify_samples
from symtensor.verify.sizes import jittered_sizes

__all__ = [
    "LAWS",
    "ClaimError",
    "DataError",
    "DataWarning",
    "Jump",
    "Law",
    "LevelResult",
    "Rates",
    "RefusedLevel",
    "SamplerError",
    "SequentialRates",
    "SizesError",
    "StoreError",
    "StructuredGridWarning",
    "Table",
    "Verification",
    "VerificationError",
    "jittered_sizes",
    "measure_rates",
    "measure_sequential",
    "read_csv",
    "verify_bound",
    "verify_samples",
]
