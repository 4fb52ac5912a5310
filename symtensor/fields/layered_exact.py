"""Layered networks that can be solved exactly at any width: references for the diagrams that share nothing with them.

Two families close on finitely many numbers, so that every moment is a polynomial in x = 1/n with rational coefficients:

- `ExactLinearNetwork`: sigma = identity, any alpha, several inputs, a bias variance that may depend on S. Given the layer
  before, n G' is a noncentral Wishart matrix, whose cumulants are polynomials in G.
- `ExactHomogeneousNetwork`: alpha = 0, one input, branches sigma_r(x) = left_r x (x < 0), right_r x (x > 0). Given the
  variance s of one neuron, every mean is s^k times a mean of iid numbers.

No diagram, no expansion and no quadrature occurs: one-step conditional moments are applied backwards, layer by layer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp
from sympy.polys.rings import PolyElement, PolyRing
from sympy.utilities.iterables import multiset_partitions

from symtensor.fields._layered_chain import Chain, Index, WidthSeries, cumulant_from_moments, exact_number, require, series

__all__ = ["ExactHomogeneousNetwork", "ExactLinearNetwork", "Power", "WidthSeries"]

@dataclass(frozen=True)
class ExactLinearNetwork(Chain):
    r"""The network `phi' = alpha phi + sqrt(dt) eta`, `eta_i ~ N(0, c_b(S) + c_w S)`, with sigma = identity: S = G.

    Parameters
    ----------
    kernel : K^0, a number or a P x P matrix of rationals.
    alpha, dt, c_w, depth : of the model.
    bias : c_b, a number, or coefficients (c_0, c_1, ..) of the polynomial c_0 + c_1 m + c_2 m^2 .., m = (1/P) sum_a S_aa.
    orders : highest power of 1/n that is kept in results; None keeps all of them (all are exact).

    Notes
    -----
    Given G, cumulants of G' are sums over the ways to join the pairs in a cycle, with s = dt (c_b + c_w G) on the links
    or alpha^2 G on one of them; for one input

    .. math:: \kappa_p = 2^{p-1} (p-1)!\, n^{1-p} s^{p-1} (s + p\,\alpha^2 G).

    The direction of a layer's n-vector is uniform on the sphere and independent of the path of G, which gives all means
    of even powers (one input): `power_cumulant`.

    Raises
    ------
    ValueError
        Parameters that are no rationals, a kernel that is not square, symmetric and of nonnegative diagonal.

    References
    ----------
    Muirhead, Aspects of Multivariate Statistical Theory (1982), section 10.3 (noncentral Wishart distribution).

    Examples
    --------
    >>> net = ExactLinearNetwork(kernel=1, alpha=1, dt="1/8", c_w=1, bias="1/5", depth=8)
    >>> [f"{float(c):.10f}" for c in net.cumulant((8, 0, 0), (8, 0, 0))[:2]]
    ['41.5719349255', '85.0681411626']
    """

    kernel: Any
    alpha: Any
    dt: Any
    c_w: Any
    depth: int
    bias: Any = 0
    orders: int | None = None
    _memory: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = self.kernel if isinstance(self.kernel, Sequence) and not isinstance(self.kernel, str) else [[self.kernel]]
        matrix = [[exact_number(value, "kernel") for value in row] for row in rows]
        size = len(matrix)
        square = size > 0 and all(len(row) == size for row in matrix)
        symmetric = square and all(matrix[a][b] == matrix[b][a] for a in range(size) for b in range(size))
        require(symmetric and all(matrix[a][a] >= 0 for a in range(size)), f"kernel = {self.kernel!r} is not a covariance matrix")
        require(isinstance(self.depth, int) and self.depth >= 0, f"depth = {self.depth!r} must be an integer of at least 0")
        coefficients = self.bias if isinstance(self.bias, tuple | list) else (self.bias,)
        values: dict[str, Any] = {name: exact_number(getattr(self, name), name) for name in ("alpha", "dt", "c_w")}
        values["kernel"] = tuple(map(tuple, matrix))
        values["bias"] = tuple(exact_number(c, "bias") for c in coefficients)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def inputs(self) -> int:
        return len(self.kernel)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return tuple((a, b) for a in range(self.inputs) for b in range(a, self.inputs))

    @cached_property
    def ring(self) -> PolyRing:  # type: ignore[override]
        return PolyRing(["x", *(f"G{a}_{b}" for a, b in self.pairs)], sp.QQ, sp.lex)

    def cumulant(self, *factors: tuple[int, int, int]) -> WidthSeries:
        """n^(q-1) times the joint cumulant of q entries of G, each a triple (layer, a, b): coefficients in 1/n.

        One factor gives the mean of G, two n Cov(G, G), three n^2 times the third cumulant; layers may differ.
        """
        require(len(factors) > 0, "a cumulant of no factor was asked for; give triples (layer, a, b)")
        for layer, a, b in factors:
            inside = 0 <= layer <= self.depth and min(a, b) >= 0 and max(a, b) < self.inputs
            require(inside, f"(layer, a, b) = {(layer, a, b)} is outside depth {self.depth} and {self.inputs} inputs")
        shift = len(factors) - 1
        keep = None if self.orders is None else self.orders + shift
        return series(cumulant_from_moments(factors, lambda chosen: self._moment(chosen, keep)), shift, self.orders)

    def fourth_moment(self, layer: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> WidthSeries:
        """Coefficients in 1/n of the expected mean over neurons of phi_a phi_b phi_c phi_d (phi^4 for one input)."""
        require(0 <= layer <= self.depth, f"layer = {layer} is outside depth {self.depth}")
        total, spread = self.ring.zero, [list(map(self.ring.ground_new, row)) for row in self.kernel]
        splits = (((a, b), (c, d)), ((a, c), (b, d)), ((a, d), (b, c)))
        start = sum((spread[p[0]][p[1]] * spread[q[0]][q[1]] for p, q in splits), self.ring.zero)
        total += start * self.alpha ** (4 * layer)
        own, noise = self._memory_matrices()
        one_step = self.ring.zero
        for p, q in splits:
            (left, right), (other, last) = p, q
            s, t = noise[left][right], noise[other][last]
            one_step += s * t + s * own[other][last] + own[left][right] * t
        for step in range(layer):
            total += self._expectation(one_step, step, self.orders) * self.alpha ** (4 * (layer - 1 - step))
        return series(total, 0, self.orders)

    def power_cumulant(self, *factors: tuple[int, int]) -> WidthSeries:
        """One input: n^(q-1) times the joint cumulant at one layer of means over neurons of phi^(2k), to `orders` in 1/n.

        Parameters
        ----------
        factors : (layer, k), the same layer in all of them; (layer, 1) is G, (layer, 2) the mean of phi^4.

        Raises
        ------
        ValueError
            Several inputs, different layers, or `orders` left open (the moments are rational functions of 1/n here).

        Notes
        -----
        phi = sqrt(n G) u with u uniform on the sphere, E prod_i u_i^(2 m_i) = prod_i (2 m_i - 1)!! / (n (n+2) .. (n+2m-2)).
        """
        require(self.inputs == 1, "means of powers are known for one input only; use fourth_moment")
        require(self.orders is not None, "powers need `orders`, the highest power of 1/n wanted")
        require(len({layer for layer, _ in factors}) == 1, "the factors of a power cumulant are at one layer")
        layer, shift = factors[0][0], len(factors) - 1
        keep = int(self.orders) + shift  # type: ignore[arg-type]

        def moment(chosen: Sequence[tuple[int, int]]) -> PolyElement:
            powers = [k for _, k in chosen]
            return self._cut(self._moment([(layer, 0, 0)] * sum(powers), keep) * self._sphere_mean(powers, keep), keep)

        return series(self._cut(cumulant_from_moments(factors, moment), keep), shift, self.orders)

    def _sphere_mean(self, powers: Sequence[int], keep: int) -> PolyElement:
        """E prod_j (mean_i v_i^(2 k_j)), v = sqrt(n) u, u uniform on the unit sphere of R^n, as a series in x = 1/n."""
        x, total = self.ring.gens[0], self.ring.zero
        for blocks in multiset_partitions(list(range(len(powers)))):
            degrees = [sum(powers[int(j)] for j in block) for block in blocks]
            distinct = math.prod((1 - k * x for k in range(len(blocks))), start=self.ring.one)  # neurons that differ
            total += int(math.prod(sp.factorial2(2 * d - 1) for d in degrees)) * distinct * x ** (len(powers) - len(blocks))
        for k in range(1, sum(powers)):
            total = self._cut(total * sum(((-2 * k * x) ** m for m in range(keep + 1)), self.ring.zero), keep)  # 1/(1 + 2 k x)
        return total

    def _moment(self, factors: Sequence[tuple[int, int, int]], keep: int | None) -> PolyElement:
        """E of a product of entries of G at any layers."""
        value = self.ring.one
        key = (tuple(sorted((layer, min(a, b), max(a, b)) for layer, a, b in factors)), keep)
        if key not in self._memory:
            for layer in range(max((f[0] for f in factors), default=0), -1, -1):
                for _, a, b in (f for f in factors if f[0] == layer):
                    value = value * self._entry(a, b)
                value = self._backward(value, layer, keep)
            self._memory[key] = value
        return self._memory[key]

    def _expectation(self, value: PolyElement, layer: int, keep: int | None) -> PolyElement:
        """E of a polynomial in G at one layer."""
        for step in range(layer, -1, -1):
            value = self._backward(value, step, keep)
        return value

    def _entry(self, a: int, b: int) -> PolyElement:
        return self.ring.gens[1 + self.pairs.index((min(a, b), max(a, b)))]

    def _memory_matrices(self) -> tuple[list[list[PolyElement]], list[list[PolyElement]]]:
        """alpha^2 G and dt (c_b + c_w G)."""
        size = range(self.inputs)
        level = sum((self._entry(a, a) for a in size), self.ring.zero) * sp.QQ(1, self.inputs)
        bias = sum((self.ring.ground_new(c) * level**k for k, c in enumerate(self.bias)), self.ring.zero)
        own = [[self._entry(a, b) * self.alpha**2 for b in size] for a in size]
        noise = [[(bias + self._entry(a, b) * self.c_w) * self.dt for b in size] for a in size]
        return own, noise

    def _backward(self, value: PolyElement, layer: int, keep: int | None) -> PolyElement:
        """E[value(G^layer) | G^(layer - 1)]; at layer 0 the expectation over the input layer."""
        if layer:
            own, noise = self._memory_matrices()
        else:
            own = [[self.ring.zero] * self.inputs for _ in range(self.inputs)]
            noise = [list(map(self.ring.ground_new, row)) for row in self.kernel]
        known = self._memory.setdefault(("moments", layer > 0, keep), {})
        cumulants = self._memory.setdefault(("cumulants", layer > 0), {})

        def cumulant(index: Index) -> PolyElement:
            if index not in cumulants:
                cumulants[index] = _wishart_cumulant(self.ring, self.pairs, index, noise, own)
            return cumulants[index]

        total = self.ring.zero
        for monomial, coefficient in value.terms():
            weight = self.ring.gens[0] ** monomial[0] * coefficient
            total += weight * self._moments(monomial[1:], cumulant, known, keep)
        return self._cut(total, keep)


def _wishart_cumulant(ring: PolyRing, pairs: Sequence[tuple[int, int]], index: Index, noise: Any, own: Any) -> PolyElement:
    """Joint cumulant of entries of (1/n) sum_i (m_i + e_i)(m_i + e_i)^T, e_i ~ N(0, noise), (1/n) sum m_i m_i^T = own."""
    x, ends = ring.gens[0], [pair for pair, power in zip(pairs, index) for _ in range(power)]
    size = len(ends)
    if len(pairs) == 1:
        s, mean = noise[0][0], own[0][0]
        return 2 ** (size - 1) * math.factorial(size - 1) * x ** (size - 1) * s ** (size - 1) * (s + size * mean)
    total = ring.zero
    for order in itertools.permutations(ends[1:]):
        for turned in itertools.product((False, True), repeat=size - 1):
            cycle = [ends[0], *(pair[::-1] if turn else pair for pair, turn in zip(order, turned))]
            links = [(cycle[k - 1][1], cycle[k][0]) for k in range(size)]
            product = math.prod((noise[a][b] for a, b in links), start=ring.one)
            for cut in range(size):
                others = (noise[a][b] for k, (a, b) in enumerate(links) if k != cut)
                product += math.prod(others, start=own[links[cut][0]][links[cut][1]])
            total += product
    return total * x ** (size - 1)


@dataclass(frozen=True, slots=True)
class Power:
    """An observable of one neuron, phi^(2k) times `right` for phi > 0 and `left` for phi < 0: (1, 1, 1) is G."""

    k: int = 1
    left: Any = 1
    right: Any = 1


@dataclass(frozen=True)
class ExactHomogeneousNetwork(Chain):
    r"""`phi' = sqrt(dt) sum_r eta_r` (alpha = 0, one input) with branches of the ReLU family and a polynomial bias variance.

    Parameters
    ----------
    branches : (left, right, c_w) for each branch: (0, 1, c_w) is ReLU, (1, 1, c_w) the identity.
    kernel, dt, depth : of the model.
    bias : c_b, a number or a SymPy polynomial in S1, S2, .. = the means of sigma_r^2.
    orders : highest power of 1/n that is kept; None keeps all.

    Notes
    -----
    Neurons of a layer are iid N(0, s) given s = dt (c_b + sum_r c_r S_r), so that S_r = s y_r, y_r a mean of iid numbers
    with joint cumulants n^(1-q) kappa_q and E prod_j y_j = (1/2) (prod left^2 + prod right^2) (2k - 1)!!.

    Examples
    --------
    >>> relu = ExactHomogeneousNetwork(branches=((0, 1, 2),), kernel=1, dt=1, depth=2)
    >>> relu.cumulant((2, Power()), (2, Power()))
    (12, 45, 50)
    """

    branches: tuple[tuple[Any, Any, Any], ...]
    kernel: Any
    dt: Any
    depth: int
    bias: Any = 0
    orders: int | None = None

    @cached_property
    def ring(self) -> PolyRing:  # type: ignore[override]
        return PolyRing(["x", "s", *(f"S{r + 1}" for r in range(len(self.branches)))], sp.QQ, sp.lex)

    @cached_property
    def _drive(self) -> PolyElement:
        """s of the next layer as a polynomial in the S_r."""
        names = [sp.Symbol(f"S{r + 1}") for r in range(len(self.branches))]
        bias = sp.sympify(self.bias) if isinstance(self.bias, sp.Expr) else exact_number(self.bias, "bias")
        require(bias.free_symbols <= set(names), f"bias = {bias} may hold only {names}")
        total = bias + sum((exact_number(c, "c_w") * s for (_, _, c), s in zip(self.branches, names)), sp.S.Zero)
        return self.ring.from_expr(sp.expand(exact_number(self.dt, "dt") * total))

    def cumulant(self, *factors: tuple[int, Power]) -> WidthSeries:
        """n^(q-1) times the joint cumulant of q means over neurons, each (layer, Power): coefficients in 1/n."""
        require(len(factors) > 0, "a cumulant of no factor was asked for; give pairs (layer, Power)")
        require(all(0 <= layer <= self.depth for layer, _ in factors), f"a layer is outside depth {self.depth}")
        shift = len(factors) - 1
        keep = None if self.orders is None else self.orders + shift
        return series(cumulant_from_moments(factors, lambda chosen: self._moment(chosen, keep)), shift, self.orders)

    def branch(self, r: int) -> Power:
        """The observable S_r."""
        left, right, _ = self.branches[r]
        return Power(1, exact_number(left, "left") ** 2, exact_number(right, "right") ** 2)

    def _moment(self, factors: Sequence[tuple[int, Power]], keep: int | None) -> PolyElement:
        ring, value = self.ring, self.ring.one
        branches = [self.branch(r) for r in range(len(self.branches))]
        for layer in range(max((f[0] for f in factors), default=0), -1, -1):
            here = [power for at, power in factors if at == layer]
            known: dict[Index, PolyElement] = {}
            variables = [*branches, *here]
            drive = value.compose(ring.gens[1], self._drive)  # a function of this layer's S_r

            def cumulant(index: Index, variables: Sequence[Power] = variables) -> PolyElement:
                return _iid_cumulant(variables, index) * ring.gens[0] ** (sum(index) - 1)

            total = ring.zero
            for monomial, coefficient in drive.terms():
                index = (*monomial[2:], *([1] * len(here)))
                degree = sum(monomial[2:]) + sum(power.k for power in here)
                mean = self._moments(index, cumulant, known, keep)
                total += ring.gens[0] ** monomial[0] * ring.gens[1] ** degree * coefficient * mean
            value = self._cut(total, keep)
        return value.compose(ring.gens[1], ring.ground_new(exact_number(self.kernel, "kernel")))


def _iid_cumulant(variables: Sequence[Power], index: Index) -> Any:
    """Joint cumulant of single-neuron variables at unit variance."""
    chosen = [variable for variable, power in zip(variables, index) for _ in range(power)]

    def moment(some: Sequence[Power]) -> Any:
        sides = [sp.prod([exact_number(getattr(v, side), side) for v in some]) for side in ("left", "right")]
        return sp.factorial2(2 * sum(v.k for v in some) - 1) * sum(sides) / 2

    return sp.QQ.from_sympy(cumulant_from_moments(chosen, moment))
