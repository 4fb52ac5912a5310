"""What a derivation hands to the code generator: named kernels, as values.

A kernel is mathematics plus names and shapes; it says nothing about how it is computed. Five kinds are enough for a
layered recursion, and each is lowered by one file of `codegen`:

* `ScalarKernel`    SymPy expressions, elementwise in scalar (broadcasting) arguments
* `TensorKernel`    tensor expressions of array arguments (lowered to einsum)
* `MomentKernel`    weak Gaussian moments m_ij[a, b] = E[d_a^i d_b^j sigma(phi_a) sigma(phi_b)]
* `CompositeKernel` other kernels called in sequence (one layer)
* `ScanKernel` / `OdeKernel`  the layer iterated over depth / integrated in continuous depth
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import sympy

    from symtensor.activation import Activation
    from symtensor.tensor import Index, TensorExpr

Shape: TypeAlias = "tuple[str | int, ...]"


@dataclass(frozen=True, slots=True)
class Argument:
    """A named argument or output: `shape` holds dimension names ("P") or integers; `()` is a scalar."""

    name: str
    shape: Shape = ()
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class ScalarKernel:
    """`outputs[k] = expression of the scalar arguments` (arrays broadcast)."""

    name: str
    arguments: tuple[Argument, ...]
    outputs: tuple[tuple[str, sympy.Expr], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class TensorKernel:
    """`output[axes] = expression`; tensor heads and coefficient symbols are the arguments, matched by name."""

    name: str
    arguments: tuple[Argument, ...]
    expression: TensorExpr
    axes: tuple[Index, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class MomentKernel:
    """Weak moments of one activation under a P x P covariance `K` (argument 0).

    `orders` lists the (i, j) wanted; output `m{i}{j}` has shape (P, P), with m_ji[a, b] = m_ij[b, a].
    """

    name: str
    activation: Activation
    orders: tuple[tuple[int, int], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """`targets = kernel(*arguments)`; a target `m00` of a MomentKernel `moments` bound to `m` is written `m.m00`."""

    targets: tuple[str, ...]
    kernel: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompositeKernel:
    """Kernels called in sequence; `returns` names local variables, gathered in a named tuple."""

    name: str
    arguments: tuple[Argument, ...]
    assignments: tuple[Assignment, ...]
    returns: tuple[Argument, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class ScanKernel:
    """Iterate `step` `depth` times: `carry` maps state argument -> returned name; the rest of `step`'s returns is recorded.

    The outputs have a leading axis 0..depth: the states, and every recorded quantity (the step evaluated once more at
    the last depth for the records).
    """

    name: str
    step: str
    carry: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class OdeKernel:
    """Integrate `d state/dt = rhs(state)`; `carry` maps state argument -> the returned name that is its derivative."""

    name: str
    rhs: str
    carry: tuple[tuple[str, str], ...]
    title: str = ""


Kernel: TypeAlias = "ScalarKernel | TensorKernel | MomentKernel | CompositeKernel | ScanKernel | OdeKernel"
