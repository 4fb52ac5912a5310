r"""Theories whose lines carry momenta: diagrams, integrands with all times integrated, integrals over loop momenta.

* `theory`          `MomentumTheory`: static (phi^4 in d dimensions) and stochastic (KPZ, Burgers, model A)
* `momentum_sum`    `MomentumSum`: the terms of a cumulant or vertex function, their sum as integrals
* `momentum_term`   one diagram: vertex factors at wave vectors, times integrated exactly
* `routes`          wave vectors of lines, loop momenta placed symmetrically
* `vectors`         scalar products
* `small_momentum`  expansion at small external momenta with averages over directions, any dimension
* `quadrature`      numbers with errors
"""

from __future__ import annotations

from symtensor.fields.momentum.momentum_sum import MomentumSum
from symtensor.fields.momentum.momentum_term import MomentumTerm
from symtensor.fields.momentum.small_momentum import MomentumSeries, angular_constant
from symtensor.fields.momentum.theory import MOMENTUM_THEORIES, MomentumTheory, MomentumVertex, P, momentum_theory
from symtensor.fields.momentum.vectors import ScalarProduct, in_one_dimension, multiplied_out, squared

__all__ = [
    "MOMENTUM_THEORIES",
    "MomentumSeries",
    "MomentumSum",
    "MomentumTerm",
    "MomentumTheory",
    "MomentumVertex",
    "P",
    "ScalarProduct",
    "angular_constant",
    "in_one_dimension",
    "momentum_theory",
    "multiplied_out",
    "squared",
]  # fmt: skip
