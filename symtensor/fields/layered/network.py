r"""The model: a layered, conditionally Gaussian network, validated.

    phi^{l+1}_i = alpha phi^l_i + sqrt(dt) sum_r eta^{r, l+1}_i ,   sum_r eta^r ~ N(0, Sigma(S)) given phi^l,   phi^0_i ~ N(0, K^0)

with neurons i = 1..n and S^r_ab = (1/n) sum_i sigma_r(phi_i(a)) sigma_r(phi_i(b)). alpha = 1 is a residual network, alpha = 0
and dt = 1 a multilayer perceptron.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from symtensor.activation import Activation, activation
from symtensor.fields.layered.drive import Drive, bias_expression, pairs
from symtensor.fields.layered.errors import NetworkError

if TYPE_CHECKING:
    from symtensor.fields.layered.model import LayeredAction

__all__ = ["Branch", "Functions", "LayeredNetwork"]

#: how far below zero an eigenvalue of the input kernel may lie, relative to the largest one
ROUNDING = 1e-10


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of a block: eta(a) = sum_j W_ij sigma(phi_j(a)), W_ij ~ N(0, c_w / n).

    >>> Branch("tanh", 2.0).activation.name
    'tanh'
    """

    activation: Activation
    c_w: float

    def __init__(self, activation_: Activation | sp.Expr | str, c_w: float) -> None:
        object.__setattr__(self, "activation", activation(activation_))
        object.__setattr__(self, "c_w", _number("c_w", c_w))
        if self.c_w < 0:
            raise NetworkError(f"c_w={c_w!r} of branch {self.activation.name!r}: a weight variance is >= 0")


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions whose products h_ab = f(phi_a) f(phi_b) are followed: first the branches, which feed forward, then others.

    Attributes:
        functions: without repetitions.
        branches: how many of them feed forward.
        names: name of an observable -> its place in `functions`.
    """

    functions: tuple[Activation, ...]
    branches: int
    names: Mapping[str, int]

    def place(self, name: str) -> int:
        """Where the function of an observable stands; raises NetworkError if there is none of that name."""
        if name not in self.names:
            raise NetworkError(f"unknown observable {name!r}; this expansion has {', '.join(map(repr, self.names))}")
        return self.names[name]


@dataclass(frozen=True, eq=False)
class LayeredNetwork:
    """A layered network of infinite or finite width n; every argument is checked when it is built.

    Parameters
    ----------
    branches
        The branches of a block (at least one), each an activation with its weight variance.
    alpha, dt
        Weight of the skip connection (>= 0) and variance scale of the noise (> 0).
    depth
        The number of blocks; layers are counted 0 .. depth.
    kernel
        K^0, the P x P covariance of the pre-activations of one neuron in layer 0 (a number for one input). It may be singular.
    bias
        The bias variance: a number, or an expression (SymPy or text) in S1, S2, .., the averages over the inputs of S^r_aa.

    Raises
    ------
    NetworkError
        What is wrong with an argument; ActivationError and ExpressionSyntaxError for what cannot be read.

    Examples
    --------
    >>> net = LayeredNetwork([Branch("tanh", 2.0), Branch("relu", 1)], alpha=1, dt=0.1, depth=4, kernel=2.0, bias="S1^2/10")
    >>> net.inputs, net.drive.degree
    (1, 2)
    """

    branches: tuple[Branch, ...]
    alpha: float
    dt: float
    depth: int
    kernel: np.ndarray
    bias: sp.Expr

    def __init__(self, branches: Sequence[Branch], *, alpha: float, dt: float, depth: int, kernel: Any, bias: Any = 0.0) -> None:
        given = tuple(branches) if not isinstance(branches, Branch) else (branches,)
        if not given or not all(isinstance(branch, Branch) for branch in given):
            raise NetworkError(f"branches={branches!r}: give one or more Branch(activation, c_w)")
        if len({branch.activation.expr for branch in given}) < len(given):
            raise NetworkError("two branches have the same activation; join them to one with the sum of their c_w")
        if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or depth < 1:
            raise NetworkError(f"depth={depth!r}: the number of blocks is an integer >= 1")
        values = {"alpha": _number("alpha", alpha), "dt": _number("dt", dt)}
        if values["alpha"] < 0:
            raise NetworkError(f"alpha={alpha!r}: the weight of the skip connection is >= 0")
        if values["dt"] <= 0:
            raise NetworkError(f"dt={dt!r}: the scale of the noise is > 0; for a network without noise there is nothing to expand")
        for name, value in (("branches", given), *values.items(), ("depth", int(depth)), ("kernel", _kernel(kernel))):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "bias", bias_expression(bias, len(given)))

    @classmethod
    def single(
        cls,
        activation_: Activation | sp.Expr | str,
        *,
        c_w: float,
        c_b: Any = 0.0,
        alpha: float,
        dt: float,
        depth: int,
        kernel: Any,
    ) -> LayeredNetwork:
        """The standard network: one branch, Sigma = C_b + C_W S.

        >>> LayeredNetwork.single("tanh", c_w=2, c_b=0, alpha=1, dt=0.1, depth=3, kernel=2.0)
        <LayeredNetwork tanh, c_w=2, bias 0, alpha=1, dt=0.1, depth 3, 1 input>
        """
        return cls([Branch(activation_, c_w)], alpha=alpha, dt=dt, depth=depth, kernel=kernel, bias=c_b)

    @property
    def inputs(self) -> int:
        """The number P of inputs."""
        return len(self.kernel)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs a <= b of inputs."""
        return pairs(self.inputs)

    @property
    def drive(self) -> Drive:
        """Sigma as a function of S, with its derivatives."""
        return Drive(tuple(branch.c_w for branch in self.branches), self.bias, self.inputs)

    def action(self) -> LayeredAction:
        """The effective action n[Shat.S + W] with its conventions, to be printed."""
        from symtensor.fields.layered.model import LayeredAction

        return LayeredAction(self)

    def functions(self, observables: Mapping[str, Any] | None = None) -> Functions:
        """The functions to follow; by default the branches and G (the identity), with ``S`` for the first branch.

        Raises NetworkError for an observable without name, ActivationError for one that is no function of x.
        """
        first = self.branches[0].activation
        wanted = {"G": activation("identity"), "S": first} if observables is None else observables
        if not isinstance(wanted, Mapping):
            raise NetworkError(f"observables={wanted!r}: give a mapping of names to functions of x, such as {{'fourth': 'x^2'}}")
        found = {branch.activation.expr: branch.activation for branch in self.branches}
        names: dict[str, int] = {}
        for name, given in wanted.items():
            if not isinstance(name, str) or not name:
                raise NetworkError(f"observable {name!r}: an observable has a text as its name")
            function = activation(given)
            found.setdefault(function.expr, function)
            names[name] = list(found).index(function.expr)
        return Functions(tuple(found.values()), len(self.branches), names)

    def __repr__(self) -> str:
        branches = " + ".join(f"{branch.activation.name}, c_w={branch.c_w:g}" for branch in self.branches)
        inputs = "1 input" if self.inputs == 1 else f"{self.inputs} inputs"
        return f"<LayeredNetwork {branches}, bias {self.bias}, alpha={self.alpha:g}, dt={self.dt:g}, depth {self.depth}, {inputs}>"


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer, sp.Rational, sp.Float)):
        raise NetworkError(f"{name}={value!r}: a real number is required")
    if not math.isfinite(float(value)):
        raise NetworkError(f"{name}={value!r}: a finite number is required")
    return float(value)


def _kernel(given: Any) -> np.ndarray:
    try:
        kernel = np.atleast_2d(np.array(given, dtype=float))
    except (TypeError, ValueError) as error:
        raise NetworkError(f"kernel of type {type(given).__name__}: give a P x P array of numbers, or a number") from error
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1] or kernel.size == 0:
        raise NetworkError(f"kernel of shape {np.shape(given)}: a P x P covariance matrix is required")
    if not np.all(np.isfinite(kernel)):
        raise NetworkError("kernel: an entry is not finite")
    scale = float(np.max(np.abs(kernel)))
    if not np.allclose(kernel, kernel.T, rtol=0, atol=ROUNDING * scale):
        raise NetworkError("kernel: it is not symmetric, so it is no covariance; use (K + K.T)/2 if rounding is the reason")
    lowest = float(np.linalg.eigvalsh(kernel)[0])
    if lowest < -ROUNDING * scale:
        raise NetworkError(f"kernel: its lowest eigenvalue is {lowest:.3g}, so it is no covariance; it has to be >= 0")
    kernel = (kernel + kernel.T) / 2
    kernel.setflags(write=False)
    return kernel
