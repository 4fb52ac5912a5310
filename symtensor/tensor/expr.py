"""Tensor expressions: immutable sums of terms with the same free indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import sympy

from symtensor.tensor import printing
from symtensor.tensor.canonical import canonical_terms
from symtensor.tensor.delta import reduce_deltas
from symtensor.tensor.einsum import EinsumTerm, einsum_terms
from symtensor.tensor.errors import CoefficientError, IndexClashError, IndexTypeError, SymmetryError, TensorError
from symtensor.tensor.evaluation import evaluate_einsum, evaluate_loops
from symtensor.tensor.index import Index, Slot, listed
from symtensor.tensor.scalars import as_scalar, exact_form, is_scalar
from symtensor.tensor.symmetry import SymmetryGroup
from symtensor.tensor.term import Term, multiplied, relabelled

if TYPE_CHECKING:
    import numpy as np

    from symtensor.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorExpr:
    """A sum of `terms`, each with the free indices `free`; no terms is the zero tensor with these indices.

    Made from heads (`K[a, b]`), scalars and `+ - * /`. A repeated index is *not* summed: `X[a, b] * V[a, a, c, d]` has
    the free indices a, b, c, d; only `sum` contracts. Equality and hash go by canonical form, so they see slot
    symmetries, names of summed indices, the order of factors and Kronecker deltas. The zero tensor equals the number 0.

    Raises: IndexClashError if the terms have different free indices.

    >>> from symtensor.tensor import Dimension, SymmetryGroup, Tensor
    >>> P = Dimension("P")
    >>> a, b, c, d = P.indices("a b c d")
    >>> K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))
    >>> (K[a, c] * K[c, b]).sum(c) == (K[d, a] * K[b, d]).sum(d)
    True
    >>> K[a, b] + 2 * K[b, a] - K[a, b] * 3
    TensorExpr(K[a, b] + 2*K[b, a] - 3*K[a, b])
    >>> _.is_zero
    True
    """

    terms: tuple[Term, ...]
    free: frozenset[Index]
    _canonical: TensorExpr | None = field(default=None, init=False)

    # NumPy scalars on the left leave the product to __rmul__.
    __array_ufunc__ = None

    def __post_init__(self) -> None:
        for term in self.terms:
            if term.free != self.free:
                raise IndexClashError(
                    f"terms with different free indices in one sum: {listed(self.free)} and {listed(term.free)} "
                    f"(index {listed(self.free ^ term.free)} is in only one of them); sum or rename first"
                )

    @classmethod
    def scalar(cls, value: object) -> TensorExpr:
        """A scalar without tensors.

        Raises: CoefficientError if `value` is no finite commuting number or SymPy expression.
        """
        return cls((Term(as_scalar(value), ()),), frozenset()).map_coefficients(lambda coefficient: coefficient)

    @classmethod
    def zero(cls, *indices: Index) -> TensorExpr:
        """The zero tensor with these free indices."""
        return cls((), frozenset(indices))

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> TensorExpr:
        if not isinstance(other, TensorExpr):
            if not is_scalar(other):
                return NotImplemented
            if other == 0:  # so that the builtin sum() works
                return self
            other = TensorExpr.scalar(other)
        if self.free != other.free:
            raise IndexClashError(
                f"cannot add tensors with free indices {listed(self.free)} and {listed(other.free)}: "
                f"index {listed(self.free ^ other.free)} is in only one of them; sum or rename first"
            )
        return TensorExpr(self.terms + other.terms, self.free)

    __radd__ = __add__

    def __neg__(self) -> TensorExpr:
        return self.map_coefficients(lambda coefficient: -coefficient)

    def __pos__(self) -> TensorExpr:
        return self

    def __sub__(self, other: object) -> TensorExpr:
        if not (isinstance(other, TensorExpr) or is_scalar(other)):
            return NotImplemented
        return self + (-other)  # type: ignore[operator]

    def __rsub__(self, other: object) -> TensorExpr:
        return -self + other if is_scalar(other) else NotImplemented

    def __mul__(self, other: object) -> TensorExpr:
        if isinstance(other, TensorExpr):
            terms = tuple(multiplied(left, right) for left in self.terms for right in other.terms)
            return TensorExpr(terms, self.free | other.free)
        if not is_scalar(other):
            return NotImplemented
        scalar = as_scalar(other)
        return self.map_coefficients(lambda coefficient: coefficient * scalar)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> TensorExpr:
        if isinstance(other, TensorExpr) or not is_scalar(other):
            return NotImplemented
        return self * (sympy.Integer(1) / as_scalar(other))

    # -- indices ------------------------------------------------------------------------------------------------------

    def sum(self, *indices: Index) -> TensorExpr:
        """Sum over free indices.

        Raises: IndexClashError if an index is not free or is given twice.
        """
        for index in indices:
            if index not in self.free or indices.count(index) > 1:
                raise IndexClashError(
                    f"cannot sum over {index}: the free indices are {listed(self.free)}, each can be summed once"
                )
        terms = tuple(Term(term.coefficient, term.factors, term.summed + indices) for term in self.terms)
        return TensorExpr(terms, self.free.difference(indices))

    def rename(self, mapping: Mapping[Index, Slot]) -> TensorExpr:
        """Replace free indices, all at once, by other indices or by components (integers).

        Two indices may become the same one: `K[a, b].rename({b: a})` is the diagonal, nothing is summed.

        Raises: IndexClashError if an index is not free, IndexTypeError if the dimensions differ.
        """
        for index, target in mapping.items():
            if index not in self.free:
                raise IndexClashError(f"cannot rename {index}: the free indices are {listed(self.free)}")
            _check_target(index, target)
        free = (mapping.get(index, index) for index in self.free)
        terms = tuple(relabelled(term, mapping) for term in self.terms)
        return TensorExpr(terms, frozenset(slot for slot in free if isinstance(slot, Index)))

    def contract_deltas(self) -> TensorExpr:
        """Carry out the sums that a Kronecker delta makes trivial; the free indices stay the same.

        A free index is never eliminated: `delta(a, t) * F[t]` stays what it is unless t or a is summed.
        """
        reduced = (reduce_deltas(term, identify_free=False) for term in self.terms)
        return TensorExpr(tuple(term for term in reduced if term is not None), self.free)

    # -- canonical form -----------------------------------------------------------------------------------------------

    def canonical(self) -> TensorExpr:
        """The canonical form: deltas reduced, slots and factors ordered, summed indices renamed, like terms collected.

        Two expressions have the same canonical form if and only if slot symmetries, renaming of summed indices and
        arithmetic make them equal (not identities that hold at one size of a dimension only).
        """
        if self._canonical is None:
            result = TensorExpr(canonical_terms(self.terms), self.free)
            object.__setattr__(result, "_canonical", result)
            object.__setattr__(self, "_canonical", result)
        assert self._canonical is not None
        return self._canonical

    @property
    def is_zero(self) -> bool:
        """Whether this is the zero tensor."""
        return not self.canonical().terms

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TensorExpr):
            return self.free == other.free and self._compared() == other._compared()
        if not is_scalar(other):
            return NotImplemented
        if other == 0:
            return self.is_zero
        return not self.free and self == TensorExpr.scalar(other)

    def __hash__(self) -> int:
        terms = self._compared()
        if all(not factors for _, factors, _ in terms):  # equal to a SymPy expression, so hashed like it
            return hash(terms[0][0]) if terms else hash(sympy.Integer(0))
        return hash((self.free, terms))

    def _compared(self) -> tuple:
        """What equality compares: the canonical terms, floats counting as the numbers they are."""
        return tuple((exact_form(term.coefficient), term.factors, term.summed) for term in self.canonical().terms)

    def __bool__(self) -> bool:
        raise TensorError(f"the truth value of {self} is not defined: use .is_zero")

    # -- coefficients -------------------------------------------------------------------------------------------------

    def map_coefficients(self, function: Callable[[sympy.Expr], Any]) -> TensorExpr:
        """Apply a function to every coefficient; terms that become zero are dropped.

        Raises: CoefficientError if a result is no finite commuting scalar.
        """
        mapped = ((as_scalar(function(term.coefficient)), term) for term in self.terms)
        terms = (
            Term(value, term.factors, term.summed) for value, term in mapped if not (value.is_Number and not value)
        )
        return TensorExpr(tuple(terms), self.free)

    def subs(self, mapping: Mapping[sympy.Expr, Any]) -> TensorExpr:
        """Substitute SymPy symbols or expressions in the coefficients, all at once."""
        for old, new in mapping.items():
            if not isinstance(old, sympy.Expr):
                raise CoefficientError(f"cannot substitute for {old!r}: keys must be SymPy expressions")
            as_scalar(new)
        pairs = list(mapping.items())
        return self.map_coefficients(lambda coefficient: coefficient.subs(pairs, simultaneous=True))

    def coeff(self, symbol: sympy.Symbol, power: int) -> TensorExpr:
        """The tensor that multiplies `symbol**power`.

        Raises: CoefficientError if a coefficient is not polynomial in the symbol.
        """
        if not isinstance(symbol, sympy.Symbol):
            raise CoefficientError(f"coefficients of powers of {symbol!r}: need a SymPy symbol")

        def extract(coefficient: sympy.Expr) -> sympy.Expr:
            expanded = sympy.expand(coefficient)
            if not expanded.is_polynomial(symbol):
                raise CoefficientError(f"coefficient {coefficient} is not polynomial in {symbol}")
            return cast(sympy.Expr, expanded.coeff(symbol, power))

        return self.canonical().map_coefficients(extract)

    # -- heads and symmetries -----------------------------------------------------------------------------------------

    @property
    def heads(self) -> tuple[Tensor, ...]:
        """The heads that occur, Kronecker deltas left out, by name.

        Raises: SymmetryError if two different heads have one name.
        """
        found = {factor.tensor for term in self.terms for factor in term.factors if not factor.tensor.is_delta}
        ordered = sorted(found, key=lambda head: head.sort_key)
        for first, second in pairwise(ordered):
            if first.name == second.name:
                raise SymmetryError(f"{first!r} and {second!r} have the name {first.name}: rename one head")
        return tuple(ordered)

    def replace(self, head: Tensor, function: Callable[..., TensorExpr]) -> TensorExpr:
        """Replace each component `head[i, j, ..]` by `function(i, j, ..)`, keeping summed indices apart.

        `function` is called once, with indices made for it (so it can sum over any index of its own), and must return
        a tensor whose free indices are exactly these.

        Raises: IndexClashError if it returns other free indices.
        """
        slots = [Index(f"_{k}", dimension) for k, dimension in enumerate(head.dimensions)]
        template = function(*slots)
        if not isinstance(template, TensorExpr):
            template = TensorExpr.scalar(template)
        if template.free != set(slots):
            raise IndexClashError(
                f"replacement of {head}[{', '.join(map(str, slots))}] has the free indices {listed(template.free)}: "
                f"need {listed(slots)}"
            )
        result = TensorExpr.zero(*self.free)
        for term in self.terms:
            kept = Term(term.coefficient, tuple(factor for factor in term.factors if factor.tensor != head))
            value = TensorExpr((kept,), kept.free)
            for factor in term.factors:
                if factor.tensor == head:
                    value = value * template.rename(dict(zip(slots, factor.indices, strict=True)))
            result = result + value.sum(*term.summed)
        return result

    def symmetrise(self, group: SymmetryGroup, axes: Sequence[Index]) -> TensorExpr:
        """The projection (1/|G|) sum over g of sign(g) T[g(axes)] on tensors with symmetry `group` in `axes`.

        Raises: SymmetryError if the group has another degree, IndexClashError if an axis is not free.
        """
        images = self._images(group, axes, group.elements)
        return sum(images, TensorExpr.zero(*self.free)) / group.order  # type: ignore[return-value]

    def has_symmetry(self, group: SymmetryGroup, axes: Sequence[Index]) -> bool:
        """Whether the tensor has the symmetry `group` in its free indices `axes`."""
        return all(image == self for image in self._images(group, axes, group.generators))

    def _images(self, group: SymmetryGroup, axes: Sequence[Index], elements: Sequence) -> list[TensorExpr]:
        if group.degree != len(axes) or len(set(axes)) != len(axes):
            raise SymmetryError(f"a {group} cannot act on the axes {', '.join(map(str, axes))}")
        return [sign * self.rename({axes[k]: axes[p[k]] for k in range(len(axes))}) for p, sign in elements]

    # -- numbers ------------------------------------------------------------------------------------------------------

    def einsum(self, axes: Sequence[Index]) -> tuple[EinsumTerm, ...]:
        """The canonical form as einsum calls whose output axes are `axes`; see `EinsumTerm`.

        Raises: IndexClashError if `axes` are not exactly the free indices.

        >>> from symtensor.tensor import Dimension, Tensor
        >>> P = Dimension("P")
        >>> a, b, c = P.indices("a b c")
        >>> X, Y = Tensor("X", (P, P)), Tensor("Y", (P, P))
        >>> [(t.coefficient, t.spec, t.tensors) for t in (2 * X[a, c] * Y[c, b]).sum(c).einsum((a, b))]
        [(2, 'ai,ib->ab', ('X', 'Y'))]
        """
        self._check_axes(axes)
        return einsum_terms(self.canonical().terms, axes)

    def evaluate(
        self,
        arrays: Mapping[str, np.ndarray],
        axes: Sequence[Index] = (),
        scalars: Mapping[str, float] | None = None,
        *,
        sizes: Mapping[str, int] | None = None,
        check: bool = True,
    ) -> np.ndarray:
        """The array with axes `axes`, for arrays by head name and coefficient symbols by name, computed by einsum.

        `sizes` gives dimensions that no array shows. With `check`, arrays must have the symmetry of their head.

        Raises: IndexClashError (axes), ArrayError (missing, shape, not finite sizes), SymmetryError (not symmetric).
        """
        self._check_axes(axes)
        return evaluate_einsum(self, self.heads, arrays, axes, scalars or {}, sizes or {}, check)

    def evaluate_by_loops(
        self,
        arrays: Mapping[str, np.ndarray],
        axes: Sequence[Index] = (),
        scalars: Mapping[str, float] | None = None,
        *,
        sizes: Mapping[str, int] | None = None,
        check: bool = True,
    ) -> np.ndarray:
        """The same as `evaluate` by plain loops over every index of the terms as they stand (slow; for checks)."""
        self._check_axes(axes)
        return evaluate_loops(self, self.heads, arrays, axes, scalars or {}, sizes or {}, check)

    def _check_axes(self, axes: Sequence[Index]) -> None:
        if len(set(axes)) != len(axes) or self.free != set(axes):
            raise IndexClashError(
                f"output axes {', '.join(map(str, axes)) or 'none'} are not the free indices {listed(self.free)}, "
                f"each once"
            )

    # -- display ------------------------------------------------------------------------------------------------------

    def latex(self) -> str:
        """LaTeX of the terms as they stand, with explicit sums."""
        return printing.latex(self.terms)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __str__(self) -> str:
        return printing.text(self.terms)

    def __repr__(self) -> str:
        return f"TensorExpr({self})"


def _check_target(index: Index, target: object) -> None:
    if isinstance(target, Index) and target.dimension == index.dimension:
        return
    if isinstance(target, int) and not isinstance(target, bool) and target >= 0:
        if not isinstance(index.dimension, int) or target < index.dimension:
            return
        raise IndexTypeError(f"cannot set {index} to {target}: outside 0..{index.dimension}-1")
    dimension = f" of dimension {target.dimension}" if isinstance(target, Index) else ""
    raise IndexTypeError(
        f"cannot rename {index} of dimension {index.dimension} to {target}{dimension}: need an index of "
        f"{index.dimension} or a component counted from 0"
    )
