"""symtensor: derive correction terms symbolically, generate JAX for them, verify them against simulation.

The names below are imported on first use, so that `import symtensor` costs nothing and needs neither JAX nor
matplotlib. The packages: `tensor` (indexed expressions), `expansion` (Taylor series, Wick, Price), `fields` (actions),
`numerics` (expectations, simulation, norms), `diagrams` (Feynman diagrams), `bounds` and `verify` (stochastic bounds, measured
verdicts), `derivation` (derivations as values, reports).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symtensor.derivation.model import Derivation

__version__ = "0.1.0"

_PUBLIC = {
    "Activation": "symtensor.activation",
    "Citation": "symtensor.derivation.model",
    "Derivation": "symtensor.derivation.model",
    "Diagram": "symtensor.diagrams",
    "Dimension": "symtensor.tensor",
    "FixedPoint": "symtensor.programs",
    "GaussianExpectation": "symtensor.programs",
    "Index": "symtensor.tensor",
    "Ode": "symtensor.programs",
    "OrderTerm": "symtensor.expansion",
    "RandomTensor": "symtensor.bounds",
    "Scan": "symtensor.programs",
    "Series": "symtensor.expansion",
    "SymmetryGroup": "symtensor.tensor",
    "Tensor": "symtensor.tensor",
    "TensorExpr": "symtensor.tensor",
    "bound": "symtensor.bounds",
    "closed_form": "symtensor.expansion.gaussian",
    "compile": "symtensor._codegen",
    "definite_bound": "symtensor.bounds",
    "delta": "symtensor.tensor",
    "derivations": "symtensor.derivation.registry",
    "ExpectationFamily": "symtensor.expansion",
    "FieldTheory": "symtensor.fields",
    "IncrementAction": "symtensor.fields",
    "MomentHierarchy": "symtensor.fields",
    "average": "symtensor.expansion",
    "enumerate_diagrams": "symtensor.diagrams",
    "expect": "symtensor.numerics.expectation",
    "functional_taylor": "symtensor.expansion",
    "isserlis": "symtensor.expansion.gaussian",
    "run": "symtensor.derivation.execute",
    "scale": "symtensor.bounds",
    "series": "symtensor.expansion",
    "simulate_langevin": "symtensor.numerics.langevin",
    "subordinate_norm": "symtensor.numerics.norms",
    "taylor": "symtensor.expansion",
    "verify_bound": "symtensor.verify",
    "verify_samples": "symtensor.verify",
}

__all__ = ["__version__", "citation", *_PUBLIC]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(
            f"module 'symtensor' has no attribute {name!r}; public names: {', '.join(sorted(_PUBLIC))}"
        )
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})


def citation(derivation: str | Derivation | None = None) -> str:
    """BibTeX to cite: the software and, if a derivation is named, the papers it derives from.

    >>> print(citation())  # doctest: +ELLIPSIS
    @software{symtensor,
    ...
    """
    from symtensor.derivation.model import Derivation
    from symtensor.derivation.provenance import software_citation
    from symtensor.derivation.registry import find

    if derivation is None:
        return software_citation()
    value = derivation if isinstance(derivation, Derivation) else find(derivation)
    return "\n\n".join([software_citation(), *(source.bibtex() for source in value.citations)])
