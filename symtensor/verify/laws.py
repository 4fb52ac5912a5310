"""Laws whose order is known, drawn exactly and fast: controls for the protocol, and its simulated error rates.

A law maps (rng, n of shape (R, m), samples S) to norms of shape (R, m, S); every size of every replicate may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from symtensor.verify.verdict import Kind

__all__ = ["LAWS", "Law"]

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, Array, int], Array]


@dataclass(frozen=True, slots=True)
class Law:
    """A random norm with a claim about it; `truth` says whether O(claim) is true, and whether it is tight."""

    name: str
    draw: Draw
    claim: str
    scale: Callable[[Array], Array]
    truth: str
    kind: Kind = "O"

    def sampler(self) -> Callable[[int, int, int], Array]:
        """The law as a sampler `(n, samples, seed) -> (samples,)` for `verify_bound`."""
        draw = self.draw

        def sample(n: int, samples: int, seed: int) -> Array:
            return draw(np.random.default_rng(seed), np.array([[float(n)]]), samples)[0, 0]

        sample.__name__ = self.name
        return sample


def gaussian_vector(rng: np.random.Generator, n: Array, samples: int) -> Array:
    """||g|| of g ~ N(0, I_n): the square root of a chi-square with n degrees of freedom."""
    return np.sqrt(2 * rng.standard_gamma(n[..., None] / 2, (*n.shape, samples)))


def wishart_deviation(rng: np.random.Generator, n: Array, samples: int, p: int = 5) -> Array:
    """Spectral norm of W/n - I for W Wishart of dimension p and n degrees of freedom, through Bartlett's factor."""
    shape = (*n.shape, samples)
    factor = np.zeros((*shape, p, p))
    for i in range(p):
        factor[..., i, i] = np.sqrt(2 * rng.standard_gamma((n[..., None] - i) / 2, shape))
        factor[..., i, :i] = rng.standard_normal((*shape, i))
    gram = factor @ np.swapaxes(factor, -1, -2) / n[..., None, None, None]
    return np.abs(np.linalg.eigvalsh(gram) - 1).max(-1)


def normal_maximum(rng: np.random.Generator, n: Array, samples: int) -> Array:
    """max of n iid |Z|, by inversion: P(max <= x) = (2 Phi(x) - 1)^n."""
    tail = -np.expm1(np.log(rng.random((*n.shape, samples))) / n[..., None])
    return -ndtri(tail / 2)


def cauchy_mean(rng: np.random.Generator, n: Array, samples: int) -> Array:
    """|mean of n iid Cauchy| has the law of one |Cauchy| at every n."""
    return np.abs(rng.standard_cauchy((*n.shape, samples)))


def two_points(rng: np.random.Generator, n: Array, samples: int) -> Array:
    """1 or n with probability 1/2 each: definite bound n, no Theta, and a quantile function that jumps at the median."""
    return np.where(rng.random((*n.shape, samples)) < 0.5, 1.0, n[..., None])


def normal(rng: np.random.Generator, n: Array, samples: int) -> Array:
    """|Z| at every n."""
    return np.abs(rng.standard_normal((*n.shape, samples)))


def root_log_normal(rng: np.random.Generator, n: Array, samples: int) -> Array:
    """sqrt(n) log(n) |Z|: one logarithm above sqrt(n)."""
    return (np.sqrt(n) * np.log(n))[..., None] * normal(rng, n, samples)


def random_power(rng: np.random.Generator, n: Array, samples: int) -> Array:
    """n^U with U uniform on (0, 1): every quantile has its own order, so there is no definite bound."""
    return n[..., None] ** rng.random((*n.shape, samples))


def rare_jump(rng: np.random.Generator, n: Array, samples: int, probability: float = 0.005) -> Array:
    """n with probability .005, otherwise |Z|: not O(1), but invisible to q50 and q90."""
    values = normal(rng, n, samples)
    return np.where(rng.random(values.shape) < probability, n[..., None], values)


#: the rows of the table of simulated rates, in its order
LAWS: dict[str, Law] = {
    "vector": Law("norm(g), g ~ N(0, I_n)", gaussian_vector, "sqrt(n)", np.sqrt, "true"),
    "wishart": Law("Wishart norm(W/n - I), p = 5", wishart_deviation, "1/sqrt(n)", lambda n: n**-0.5, "true"),
    "maximum": Law("max of n iid abs(Z)", normal_maximum, "sqrt(log(n))", lambda n: np.sqrt(np.log(n)), "true"),
    "cauchy": Law("Cauchy mean", cauchy_mean, "1", np.ones_like, "true"),
    "two-points": Law("{1, n}, probability 1/2 each", two_points, "n", lambda n: n, "true"),
    "vector-loose": Law("norm(g)", gaussian_vector, "n", lambda n: n, "loose"),
    "log-slack": Law("Z", normal, "log(n)", np.log, "loose"),
    "log-missing": Law("sqrt(n) log(n) Z", root_log_normal, "sqrt(n)", np.sqrt, "false"),
    "power": Law("n^U", random_power, "sqrt(n)", np.sqrt, "false"),
    "rare": Law("n with probability .005, else Z", rare_jump, "1", np.ones_like, "false"),
}  # fmt: skip
