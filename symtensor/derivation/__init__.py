"""Derivations as values: what they claim, how they are checked, run, compared with simulation and reported."""

from __future__ import annotations

from symtensor.derivation.compare import (
    Comparison,
    ComparisonError,
    ValidityWindow,
    Verdict,
    compare,
    compare_all,
    family_threshold,
    validity_window,
    verdict,
)
from symtensor.derivation.document import Cell, Document, Math
from symtensor.derivation.inputs import Inputs, KernelError, load_inputs, load_kernel, validate_kernel
from symtensor.derivation.model import (
    Check,
    CheckOutcome,
    CheckResult,
    Citation,
    Derivation,
    Equation,
    Step,
    run_checks,
)
from symtensor.derivation.output import OutputError, OutputFolder, prepare_output, stored_parameters
from symtensor.derivation.readers import InputError
from symtensor.derivation.registry import UnknownDerivationError, derivations, find
from symtensor.derivation.results import Labelled, ResultError, flatten, read_netcdf, write_netcdf, write_summary
from symtensor.derivation.settings import Option, OptionError, RunContext, RunResult, Settings

__all__ = [
    "Cell",
    "Check",
    "CheckOutcome",
    "CheckResult",
    "Citation",
    "Comparison",
    "ComparisonError",
    "Derivation",
    "Document",
    "Equation",
    "InputError",
    "Inputs",
    "KernelError",
    "Labelled",
    "Math",
    "Option",
    "OptionError",
    "OutputError",
    "OutputFolder",
    "ResultError",
    "RunContext",
    "RunResult",
    "Settings",
    "Step",
    "UnknownDerivationError",
    "ValidityWindow",
    "Verdict",
    "compare",
    "compare_all",
    "derivations",
    "family_threshold",
    "find",
    "flatten",
    "load_inputs",
    "load_kernel",
    "prepare_output",
    "read_netcdf",
    "run_checks",
    "stored_parameters",
    "validate_kernel",
    "validity_window",
    "verdict",
    "write_netcdf",
    "write_summary",
]
