r"""The discrete MSRJD action of a conditionally Gaussian layered network, as an object that is printed and checked.

One block is `phi^{l+1} = alpha phi^l + sqrt(dt) eta^{l+1}` with `eta | phi^l ~ N(0, Sigma(phi^l))`. Writing each block's
law through a response field and integrating the increments gives, per neuron,

    S = sum_l { i etahat^{l+1} . (phi^{l+1} - alpha phi^l) + (dt/2) etahat^{l+1} . Sigma(phi^l) etahat^{l+1} },

with weight exp(-S) and measure prod dphi detahat/(2 pi). In this Ito (pre-point) form the map from noise to path is
triangular with unit diagonal, so its Jacobian is 1 and no ghost fields appear, and Z = 1: both are computed here.

References: Martin, Siggia & Rose (1973); Janssen (1976); De Dominicis (1978); arXiv:2604.15742, increment action.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import sympy as sp

from symtensor.fields.gaussian_integral import integrate_gaussian

__all__ = ["IncrementAction"]


@dataclass(frozen=True)
class IncrementAction:
    """The action of `layers` blocks for `inputs` inputs, one neuron (neurons are iid given the path of Sigma).

    Examples
    --------
    >>> action = IncrementAction(inputs=1, layers=2)
    >>> action.jacobian_determinant(), action.partition_function()
    (1, 1)
    """

    inputs: int = 1
    layers: int = 2

    def __post_init__(self) -> None:
        for name in ("inputs", "layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"IncrementAction needs {name} >= 1, got {getattr(self, name)}")

    alpha: sp.Symbol = sp.Symbol("alpha", real=True)
    dt: sp.Symbol = sp.Symbol("dt", positive=True)

    def field(self, layer: int) -> sp.Matrix:
        """phi^layer as a column of `inputs` real symbols."""
        return sp.Matrix([sp.Symbol(f"phi_{layer}_{a}", real=True) for a in range(self.inputs)])

    def response(self, layer: int) -> sp.Matrix:
        """The response field of the block that ends at `layer`."""
        return sp.Matrix([sp.Symbol(f"phihat_{layer}_{a}", real=True) for a in range(self.inputs)])

    @cached_property
    def _factors(self) -> tuple[sp.Matrix, ...]:
        """Lower-triangular factors F with Sigma = F F^T, one per block: any positive covariance, whatever it depends on."""

        def entry(layer: int, i: int, j: int) -> sp.Expr:
            if i < j:
                return sp.S.Zero
            # entries may depend on the earlier fields: an undefined function of them, positive on the diagonal
            past = [symbol for step in range(layer + 1) for symbol in self.field(step)]
            return sp.Function(f"F_{layer}_{i}{j}", positive=(i == j) or None, real=True)(*past)

        size = self.inputs
        return tuple(sp.Matrix(size, size, partial(entry, layer)) for layer in range(self.layers))

    def covariance(self, layer: int) -> sp.Matrix:
        """Sigma(phi^layer): a positive matrix of arbitrary functions of the fields up to `layer`."""
        factor = self._factors[layer]
        return factor * factor.T

    def block(self, layer: int) -> sp.Expr:
        """The action of the block from `layer` to `layer + 1`."""
        response, increment = self.response(layer + 1), self.field(layer + 1) - self.alpha * self.field(layer)
        quadratic = (response.T * self.covariance(layer) * response)[0]
        return sp.I * (response.T * increment)[0] + self.dt * quadratic / 2

    def expression(self) -> sp.Expr:
        """The whole action S; the weight of a path is exp(-S)."""
        return sp.Add(*(self.block(layer) for layer in range(self.layers)))

    def jacobian_determinant(self) -> sp.Expr:
        """det d(sqrt(dt) F eta)/d(phi) of the map from the path to its increments at frozen noise amplitude, by computation.

        The residual of block l is phi^{l+1} - alpha phi^l - sqrt(dt) F(phi^l) z^{l+1}; its derivative matrix with respect
        to (phi^1, .., phi^L), with the noise z held fixed, is block lower triangular with unit diagonal.
        """
        path = [symbol for layer in range(1, self.layers + 1) for symbol in self.field(layer)]
        residuals: list[sp.Expr] = []
        for layer in range(self.layers):
            noise = sp.Matrix([sp.Symbol(f"z_{layer + 1}_{a}", real=True) for a in range(self.inputs)])
            step = self.field(layer + 1) - self.alpha * self.field(layer) - sp.sqrt(self.dt) * self._factors[layer] * noise
            residuals.extend(step)
        return sp.Matrix(residuals).jacobian(path).det()

    def partition_function(self) -> sp.Expr:
        """Z, by exact Gaussian integration block by block from the last layer to the first (causality)."""
        prefactor: Any = sp.S.One
        exponent: Any = -self.expression()
        for layer in reversed(range(self.layers)):
            # Sigma(phi^layer) does not contain phi^{layer+1}: freeze it as positive symbols while these two are integrated
            frozen: Any = [(entry, _symbol_like(entry)) for entry in self._factors[layer].flat() if entry != 0]
            exponent = exponent.subs(frozen)
            for variables in (self.response(layer + 1), self.field(layer + 1)):
                factor, exponent = integrate_gaussian(exponent, variables.flat())
                prefactor = prefactor * factor
            thaw = [(symbol, entry) for entry, symbol in frozen]
            prefactor, exponent = prefactor.subs(thaw), exponent.subs(thaw)
        measure = (2 * sp.pi) ** (self.inputs * self.layers)
        return sp.simplify(prefactor * sp.exp(exponent) / measure)

    def latex(self) -> str:
        """The action in LaTeX, for any number of layers and inputs."""
        return (
            r"S = \sum_{l}\Big\{ i\,\hat\eta^{\,l+1}\cdot(\phi^{l+1}-\alpha\,\phi^{l})"
            r" + \tfrac{dt}{2}\,\hat\eta^{\,l+1}\cdot\Sigma(\phi^{l})\,\hat\eta^{\,l+1}\Big\}"
        )

    def _repr_latex_(self) -> str:
        return f"$$ {self.latex()} $$"


def _symbol_like(entry: Any) -> sp.Symbol:
    return sp.Symbol(str(entry.func), positive=entry.is_positive, real=True)
