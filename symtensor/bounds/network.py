"""Contraction networks of independent Gaussian tensors as values: W_ij W_kj v_k, with sizes, variances and fixed inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy

from ._input import exact, positive
from .scale import SizeParameter

__all__ = ["DELTA", "GaussianNetwork", "NetworkError", "NetworkSum"]

DELTA = "delta"
Indices = tuple[str, ...]


class NetworkError(ValueError):
    """A contraction network that is not well formed."""


def size_of(value: Any, index: str) -> sympy.Expr:
    """A size as a SymPy expression in positive symbols: a name, a `SizeParameter`, a positive integer, an expression."""
    if isinstance(value, SizeParameter):
        return value.symbol
    if isinstance(value, str):
        if not value.isidentifier():
            raise NetworkError(f"the size {value!r} of index {index} is no name; give SymPy expressions as such")
        return sympy.Symbol(value, positive=True)
    size = exact(value)
    if not isinstance(size, sympy.Expr) or (size.is_number and not (size.is_Integer and size.is_positive)):
        raise NetworkError(f"index {index} has size {value!r}; a size is a positive integer, a name, or an expression in names")
    return positive(size, {s.name for s in size.free_symbols})  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class GaussianNetwork:
    """A contraction of independent Gaussian tensors: coefficient * sum over the summed indices of the product of factors.

    Every tensor has iid centred Gaussian entries; equal names are the same tensor, different names are independent. An
    index may stand in any number of factors (a neuron index does), and in none.

    Attributes:
        factors: (tensor, indices); indices as a tuple of names or as text with spaces.
        sizes: size of every index: a name such as ``"n"``, a SymPy expression, or a positive integer.
        summed: the summed indices; all of them by default. The others are free, in the order of first appearance.
        coefficient: a SymPy factor; names of sizes in it are those sizes.
        variances: variance of the entries of each tensor, 1 by default.
        gram: inner products of deterministic vectors, ``{("x", "x"): q}``; a factor ``("x", ("j",))`` named here is fixed.

    Raises:
        NetworkError: a missing size, a tensor with varying valence or sizes, an unknown summed index, a negative variance.

    Example:
        >>> frobenius = GaussianNetwork((("W", "i j"), ("W", "i j")), sizes={"i": "m", "j": "n"}, variances={"W": "1/n"})
        >>> frobenius.mean(), frobenius.variance()
        (m, 2*m/n)
    """

    factors: Any
    sizes: Any = ()
    summed: Any = None
    coefficient: Any = sympy.S.One
    variances: Any = ()
    gram: Any = ()
    free: Indices = field(init=False)

    def __post_init__(self) -> None:
        factors = tuple((str(name), _indices(held)) for name, held in self.factors)
        sizes = {str(i): size_of(value, str(i)) for i, value in dict(self.sizes).items()}
        used = list(dict.fromkeys([i for _, held in factors for i in held]))
        missing = [i for i in used if i not in sizes]
        if missing:
            raise NetworkError(f"index {missing[0]} has no size; give sizes={{{missing[0]!r}: 'n'}}")
        summed = tuple(sizes) if self.summed is None else _indices(self.summed)
        unknown = [i for i in summed if i not in sizes]
        if unknown:
            raise NetworkError(f"the summed index {unknown[0]} stands nowhere; indices: {', '.join(sizes) or 'none'}")
        names = {s.name for size in sizes.values() for s in size.free_symbols}  # type: ignore[attr-defined]
        gram = {_pair(key): positive(value, names) for key, value in dict(self.gram).items()}
        variances = {str(k): positive(value, names) for k, value in dict(self.variances).items()}
        negative = [k for k, value in variances.items() if not value.is_nonnegative]
        if negative:
            raise NetworkError(f"the variance {variances[negative[0]]} of {negative[0]} must be positive: declare its symbols so")
        stray = [name for name, _ in factors if name != DELTA and name in variances and name in {v for p in gram for v in p}]
        if stray:
            raise NetworkError(f"{stray[0]} has a variance and an inner product: it is either random or fixed")
        values = {
            "factors": factors, "sizes": tuple(sizes.items()), "summed": summed,
            "coefficient": positive(self.coefficient, names), "variances": tuple(sorted(variances.items())),
            "gram": tuple(sorted(gram.items())), "free": tuple(i for i in [*used, *sizes] if i not in summed),
        }  # fmt: skip
        values["free"] = tuple(dict.fromkeys(values["free"]))
        for name, value in values.items():
            object.__setattr__(self, name, value)
        slots: dict[str, tuple[sympy.Expr, ...]] = {}
        check_slots(self, slots)

    @classmethod
    def from_einsum(cls, formula: str, tensors: Iterable[str], sizes: Mapping[str, Any], **options: Any) -> GaussianNetwork:
        """The network of an einsum formula with one-letter indices.

        Example:
            >>> GaussianNetwork.from_einsum("ij,kj->ik", ("W", "W"), {"i": "n", "k": "n", "j": "p"}).free
            ('i', 'k')
        """
        names = list(tensors)
        inputs, arrow, output = formula.replace(" ", "").partition("->")
        groups = inputs.split(",")
        if not arrow or len(groups) != len(names):
            raise NetworkError(f"{formula!r} needs one group of indices for each of the {len(names)} tensors and an arrow ->")
        summed = [i for i in sizes if i not in output]
        return cls(tuple((name, tuple(group)) for name, group in zip(names, groups, strict=True)), sizes, summed, **options)

    @property
    def terms(self) -> tuple[GaussianNetwork, ...]:
        """This network as a sum of one term."""
        return (self,)

    @property
    def fixed(self) -> frozenset[str]:
        """Names of the deterministic vectors."""
        return frozenset(name for pair, _ in self.gram for name in pair)

    @property
    def random(self) -> tuple[tuple[str, Indices], ...]:
        """The Gaussian factors."""
        return tuple(f for f in self.factors if f[0] != DELTA and f[0] not in self.fixed)

    @property
    def degree(self) -> int:
        """The degree as a polynomial in the Gaussian entries."""
        return len(self.random)

    def __add__(self, other: Any) -> NetworkSum:
        return NetworkSum((*self.terms, *other.terms))

    def __mul__(self, factor: Any) -> GaussianNetwork:
        names = self.size_names
        coefficient = self.coefficient * positive(factor, names)
        return GaussianNetwork(self.factors, self.sizes, self.summed, coefficient, self.variances, self.gram)

    __rmul__ = __mul__

    def __neg__(self) -> GaussianNetwork:
        return self * -1

    def __sub__(self, other: Any) -> NetworkSum:
        return self + -other

    @property
    def size_names(self) -> frozenset[str]:
        """Names of the symbols in the sizes."""
        return frozenset(s.name for _, size in self.sizes for s in size.free_symbols)  # type: ignore[attr-defined]

    def renamed(self, images: Mapping[str, str]) -> GaussianNetwork:
        """The same network with other index names; two old names must not get one new name."""
        new = {i: images.get(i, i) for i, _ in self.sizes}
        if len(set(new.values())) < len(new):
            raise NetworkError(f"the renaming {dict(images)} identifies two indices; contract with a {DELTA} factor instead")
        return GaussianNetwork(
            tuple((name, tuple(new[i] for i in held)) for name, held in self.factors), {new[i]: s for i, s in self.sizes},
            tuple(new[i] for i in self.summed), self.coefficient, self.variances, self.gram,
        )  # fmt: skip

    def mean(self, **options: Any) -> sympy.Expr:
        """E of a scalar network; see `second_moment.mean`."""
        return NetworkSum(self.terms).mean(**options)

    def second_moment(self, **options: Any) -> sympy.Expr:
        """E M^2, or E ||M||_F^2 with free indices; see `NetworkSum.second_moment`."""
        return NetworkSum(self.terms).second_moment(**options)

    def variance(self, **options: Any) -> sympy.Expr:
        """E ||M - E M||_F^2; see `NetworkSum.variance`."""
        return NetworkSum(self.terms).variance(**options)


@dataclass(frozen=True, slots=True)
class NetworkSum:
    """A sum of networks with the same free indices: a tensor polynomial in Gaussian tensors.

    Raises:
        NetworkError: no term, different free indices, or one name with different valence, sizes, variance or inner product.
    """

    terms: tuple[GaussianNetwork, ...]

    def __post_init__(self) -> None:
        if not self.terms:
            raise NetworkError("a sum of networks needs at least one term")
        first = self.terms[0]
        for term in self.terms:
            if set(term.free) != set(first.free):
                raise NetworkError(f"terms with free indices {term.free} and {first.free} cannot be added; rename them")
        check_compatible(self.terms)

    @property
    def free(self) -> Indices:
        """The free indices."""
        return self.terms[0].free

    @property
    def degree(self) -> int:
        """The largest degree of a term."""
        return max(term.degree for term in self.terms)

    @property
    def size_names(self) -> frozenset[str]:
        """Names of the symbols in the sizes."""
        return frozenset().union(*(term.size_names for term in self.terms))

    def __add__(self, other: Any) -> NetworkSum:
        return NetworkSum((*self.terms, *other.terms))

    def __mul__(self, factor: Any) -> NetworkSum:
        return NetworkSum(tuple(term * factor for term in self.terms))

    __rmul__ = __mul__

    def __neg__(self) -> NetworkSum:
        return self * -1

    def __sub__(self, other: Any) -> NetworkSum:
        return self + -other

    def mean(self, **options: Any) -> sympy.Expr:
        """E of a scalar sum."""
        from .network_moments import moment

        return moment(self, **options)

    def second_moment(self, **options: Any) -> sympy.Expr:
        """E M^2, or E ||M||_F^2 with free indices."""
        from .network_moments import second_moment

        return second_moment(self, **options)

    def variance(self, **options: Any) -> sympy.Expr:
        """E ||M - E M||_F^2."""
        from .network_moments import variance

        return variance(self, **options)


def check_slots(network: GaussianNetwork, slots: dict[str, tuple[sympy.Expr, ...]]) -> None:
    """One tensor has one valence and one size in each slot."""
    sizes = dict(network.sizes)
    for name, held in network.factors:
        shape = tuple(sizes[i] for i in held)
        if name == DELTA:
            if len(shape) != 2 or shape[0] != shape[1]:
                raise NetworkError(f"{DELTA} joins two indices of equal size, given {held} of sizes {shape}")
        elif name in network.fixed and len(shape) != 1:
            raise NetworkError(f"the deterministic tensor {name} has {len(shape)} indices; only vectors have inner products")
        elif slots.setdefault(name, shape) != shape:
            raise NetworkError(f"{name} has sizes {slots[name]} and {shape}: it is one tensor, slot by slot of one size")


def check_compatible(networks: Iterable[GaussianNetwork]) -> None:
    """Equal names mean the same tensor in all networks."""
    slots: dict[str, tuple[sympy.Expr, ...]] = {}
    facts: dict[Any, sympy.Expr] = {}
    for network in networks:
        check_slots(network, slots)
        variances = dict(network.variances)
        for name in {name for name, _ in network.random}:
            _same(facts, name, variances.get(name, sympy.S.One), "variance")
        for pair, value in network.gram:
            _same(facts, pair, value, "inner product")


def _same(facts: dict[Any, sympy.Expr], key: Any, value: sympy.Expr, what: str) -> None:
    known = facts.setdefault(key, value)
    if known != value:
        raise NetworkError(f"{key} has the {what} {known} in one network and {value} in another; rename one of the tensors")


def _indices(held: Any) -> Indices:
    return tuple(held.split()) if isinstance(held, str) else tuple(str(i) for i in held)


def _pair(key: Any) -> tuple[str, str]:
    names = sorted(str(name) for name in key)
    if isinstance(key, str) or len(names) != 2:
        raise NetworkError(f"the inner product {key!r} needs two vectors: gram={{('x', 'x'): q}}")
    return names[0], names[1]
