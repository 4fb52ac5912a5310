"""What a derivation hands to the code generator: named kernels, as values.

A kernel is mathematics plus names and shapes; it says nothing about how it is computed. Each kind is lowered by one file
of `codegen`:

* `ScalarKernel`    SymPy expressions, elementwise in scalar (broadcasting) arguments
* `TensorKernel`    tensor expressions of array arguments (lowered to einsum)
* `MomentKernel`    weak Gaussian moments m_ij[a, b] = E[d_a^i d_b^j sigma(phi_a) sigma(phi_b)]
* `CompositeKernel` other kernels called in sequence (one layer)
* `ScanKernel` / `OdeKernel`  the layer iterated over depth / integrated in continuous depth
* `FixedPointKernel` the layer iterated until it changes nothing, differentiable by the implicit function theorem
* `ArrayKernel`     arrays assembled from the outputs of a scalar kernel (matrices, vectors, complex numbers)
* `ExpectationKernel` E f over one or two Gaussian variables, f a scalar kernel
* `BatchKernel`     another kernel along a new leading axis of some arguments
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import sympy

    from symtensor.activation import Activation
    from symtensor.numerics.rules import Rule
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
    """Kernels called in sequence; `returns` names local variables, gathered in a named tuple.

    With `single`, there is one of them and it is returned as it is.
    """

    name: str
    arguments: tuple[Argument, ...]
    assignments: tuple[Assignment, ...]
    returns: tuple[Argument, ...]
    title: str = ""
    single: bool = False


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
    """Integrate `d state/dt = rhs(state)`; `carry` maps state argument -> the returned name that is its derivative.

    `time` names the argument of `rhs` that is t, if it has one; it is no argument of this kernel.
    """

    name: str
    rhs: str
    carry: tuple[tuple[str, str], ...]
    title: str = ""
    time: str = ""


@dataclass(frozen=True, slots=True)
class FixedPointKernel:
    """Solve `state = step(state)` by iteration; `carry` maps state argument -> the returned name that replaces it.

    The outputs are the states, then `converged` (whether the last change was within the tolerance) and `steps`.
    """

    name: str
    step: str
    carry: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Component:
    """One component of an argument, `place` its index (() of a scalar); `part` is `real` or `imag` of a complex one."""

    argument: str
    place: tuple[int, ...] = ()
    part: Literal["", "real", "imag"] = ""


@dataclass(frozen=True, slots=True)
class ArrayOutput:
    """An array of the given shape; `entries` (row by row) name outputs of the scalar kernel or are exact numbers.

    A complex array has the real parts of all entries first, then the imaginary parts.
    """

    name: str
    shape: tuple[int, ...]
    entries: tuple[str | sympy.Expr, ...]
    is_complex: bool = False


@dataclass(frozen=True, slots=True)
class ArrayKernel:
    """Arrays assembled from the outputs of the scalar kernel `step`, called with components of the arguments.

    Arguments may have leading axes beside those declared, which broadcast; outputs have them too. `inputs` has one
    component per argument of the step.
    """

    name: str
    arguments: tuple[Argument, ...]
    step: str
    inputs: tuple[Component, ...]
    outputs: tuple[ArrayOutput, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class ExpectationKernel:
    """E f(x) or E f(x, y) over a Gaussian law, elementwise in scalar arguments, by a trapezoidal rule.

    The scalar kernel `integrand` has one output, f; `variables` names its Gaussian arguments. The scalar kernel `law`
    gives their means and covariance: m1, k11, and for two variables also m2, k12, k22. Other arguments of both are
    arguments of this kernel.
    """

    name: str
    arguments: tuple[Argument, ...]
    integrand: str
    law: str
    variables: tuple[str, ...]
    rule: Rule
    title: str = ""


@dataclass(frozen=True, slots=True)
class BatchKernel:
    """The kernel `inner` along a new first axis of the arguments named in `batched` (all of one length B)."""

    name: str
    inner: str
    batched: tuple[str, ...]
    title: str = ""


Kernel: TypeAlias = (
    ScalarKernel
    | TensorKernel
    | MomentKernel
    | CompositeKernel
    | ScanKernel
    | OdeKernel
    | FixedPointKernel
    | ArrayKernel
    | ExpectationKernel
    | BatchKernel
)
