"""Facts: the named hypotheses that rules consume. A fact says something about tensors, expressions or events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._input import exact
from .modes import Kind, Mode, P, Uniform
from .scale import Scale, as_scale
from .value import Bound

__all__ = ["FACTS", "Fact"]

#: name -> meaning, with {0}, {1} for the subjects, {scale}, {number}, {index} for the data
FACTS: dict[str, str] = {
    "gaussian": "the entries of {0} are independent standard Gaussians",
    "iid_entries": "the entries of {0} are independent and identically distributed with a fixed law",
    "centred": "E {0} = 0",
    "sub_gaussian_entries": "the entries of {0} are sub-Gaussian with a common constant",
    "entry_variance": "every entry of {0} has variance O({scale})",
    "deterministic": "{0} is not random",
    "independent": "{all} are independent",
    "negatively_associated": "the norms of {all} are negatively associated",
    "iid_over": "{0} is independent and identically distributed over {index} (jointly in its other indices)",
    "independent_over": "{0} is independent over {index} (jointly in its other indices)",
    "identically_distributed_over": "{0} has the same law for every {index} (jointly in its other indices)",
    "uncorrelated_over": "different members of {0} over {index} are uncorrelated",
    "fixed_law": "the law of {0} does not depend on the sizes and is not degenerate",
    "known": "||{0}|| = {bound}",
    "moment": "E ||{0}||^{number} = O(({scale})^{number})",
    "variance": "E ||{0} - E {0}||^2 = O({scale})",
    "second_moment": "E ||{0}||^2 = Theta({scale})",
    "frobenius_moment": "E ||{0}||_F^2 = Theta({scale})",
    "chaos_degree": "{0} is a polynomial of fixed degree {number} in independent Gaussians",
    "uniformly_integrable": "||{0}|| / {scale} is uniformly integrable",
    "sigma_min": "the least singular value of {0} is Omega({scale})",
    "variance_proxy": "max(||sum E X X^T||, ||sum E X^T X||) = O({scale}) for X = {0}",
    "nuclear": "the nuclear norm of {0} is {bound}",
    "symmetric": "{0} is symmetric in all its slots",
    "diagonal_bound": "sup over unit v of |{0}[v, .., v]| is {bound}",
    "smooth": "{0} has {number} continuous derivatives near the point",
    "derivative_bound": "sup ||grad^{number} {0}|| / {number}! = O({scale}) near the point",
    "converges_to": "{0} -> {number} in probability",
    "conditional_bound": "for every g -> oo: P(||{0}|| > g {scale} | {index}) -> 0 in probability",
    "on_event": "{0} = O({scale}) on the event {index}",
    "probability_to_one": "P({0}) -> 1",
    "probability_bounded_below": "liminf P({0}) > 0",
    "dominated_by": "||{0}|| = O(||{1}||) in probability",
    "every_subsequence": "every subsequence has a further one along which {0} = O({scale})",
    "along_subsequence": "{0} = O({scale}) along one subsequence",
    "anscombe": "{0} is uniformly continuous in probability in its size (Anscombe)",
    "random_size": "the random size {0} is Theta({scale}) in probability",
    "fixed": "{0} does not change with the sizes",
    "groenwall": "a uniform (Groenwall) argument bounds all steps of {0} by O({scale})",
}  # fmt: skip

#: relations that do not depend on the order of their subjects
SYMMETRIC = ("independent", "negatively_associated")


@dataclass(frozen=True, slots=True)
class Fact:
    """One hypothesis: a name of `FACTS`, its subjects (names of tensors or events, or expressions) and its data."""

    name: str
    subjects: tuple[Any, ...] = ()
    scale: Scale | None = None
    number: Any = None
    index: str | None = None
    bound: Bound | None = None

    def __post_init__(self) -> None:
        if self.name not in FACTS:
            from symtensor.parsing import suggestion

            raise ValueError(f"{self.name!r} is no known fact{suggestion(self.name, FACTS)}")
        for part in ("scale", "number", "index", "bound"):
            if f"{{{part}}}" in FACTS[self.name] and getattr(self, part) is None:
                raise ValueError(f"the fact {self.name!r} ('{FACTS[self.name]}') needs {part}=")
        object.__setattr__(self, "subjects", tuple(map(subject_key, self.subjects)))
        if self.name == "dominated_by" and len(self.subjects) != 2:
            raise ValueError("dominated_by is about two tensors, in this order: fact('dominated_by', M, F) says ||M|| = O(||F||)")
        if self.name == "moment":
            order = exact(self.number)
            if not (order.is_number and order.is_extended_positive and order.is_finite):
                raise ValueError(f"a moment E ||M||^k needs a positive number k, given {self.number!r}")
            object.__setattr__(self, "number", order)

    def __str__(self) -> str:
        names = [str(subject) for subject in self.subjects] or ["it"]
        data = {"scale": self.scale, "number": self.number, "index": self.index, "bound": self.bound}
        return FACTS[self.name].format(*names, "?", all=", ".join(names), **data)


def subject_key(subject: Any) -> Any:
    """Tensors are known by their name, other expressions by their identity."""
    if isinstance(subject, str):
        return subject
    op = getattr(subject, "op", None)
    if op == "leaf":
        return subject.data.name
    return subject if op is not None else subject.name


def gaussian(*subjects: Any) -> Fact:
    """Independent standard Gaussian entries."""
    return Fact("gaussian", subjects)


def iid_entries(*subjects: Any) -> Fact:
    """Independent, identically distributed entries of a fixed law."""
    return Fact("iid_entries", subjects)


def centred(*subjects: Any) -> Fact:
    """Mean zero."""
    return Fact("centred", subjects)


def sub_gaussian_entries(*subjects: Any) -> Fact:
    """Entries sub-Gaussian with one constant."""
    return Fact("sub_gaussian_entries", subjects)


def entry_variance(scale: Any = 1, *subjects: Any) -> Fact:
    """Every entry has variance O(scale)."""
    return Fact("entry_variance", subjects, as_scale(scale))


def deterministic(*subjects: Any) -> Fact:
    """Not random."""
    return Fact("deterministic", subjects)


def independent(*subjects: Any) -> Fact:
    """Mutual independence of at least two tensors."""
    if len(subjects) < 2:
        raise ValueError("independence is a relation between at least two tensors: independent(u, v)")
    return Fact("independent", subjects)


def negatively_associated(*subjects: Any) -> Fact:
    """Negative association of the norms."""
    return Fact("negatively_associated", subjects)


def iid_over(index: str, *subjects: Any) -> Fact:
    """Independent and identically distributed members of a family, jointly in its other indices.

    For C_ij over i: the rows (C_ij)_j are iid as vectors. The cyclic C_ij = eps_{(j - i) mod n} has iid entries in every row
    and every column, but its rows are functions of one another: neither ``iid_over("i")`` nor ``iid_over("j")`` holds.
    """
    return Fact("iid_over", subjects, index=index)


def independent_over(index: str, *subjects: Any) -> Fact:
    """Independent members of a family, jointly in its other indices: the members over ``index`` as arrays over the rest."""
    return Fact("independent_over", subjects, index=index)


def identically_distributed_over(index: str, *subjects: Any) -> Fact:
    """Members of a family with one law, jointly in its other indices (which makes pointwise bounds U1)."""
    return Fact("identically_distributed_over", subjects, index=index)


def uncorrelated_over(index: str, *subjects: Any) -> Fact:
    """E[M_i (x) M_j] = 0 for centred members i != j."""
    return Fact("uncorrelated_over", subjects, index=index)


def known(
    scale: Any,
    kind: Kind | str = Kind.O,
    mode: Mode = P,
    *,
    of: Any = None,
    uniform: Uniform | tuple[Uniform, ...] = (),
    grouping: tuple[tuple[str, ...], ...] = (),
    norm_status: str = "exact",
) -> Fact:
    """A known bound, of the tensor it is attached to or of the expression ``of``.

    The mode says in which sense the kind holds: kind o in mode L^k is E ||M||^k = o(scale^k) and in mode psi2 a sub-Gaussian
    scale that is o(scale); ||M|| / scale -> 0 in probability alone is kind o in mode P.
    """
    bound = Bound(as_scale(scale), Kind(kind), mode, uniform, grouping, norm_status)  # type: ignore[arg-type]
    return Fact("known", () if of is None else (of,), bound=bound)


def moment(k: Any, scale: Any, *subjects: Any) -> Fact:
    """E ||M||^k = O(scale^k)."""
    return Fact("moment", subjects, as_scale(scale), number=k)


def sigma_min(scale: Any, *subjects: Any) -> Fact:
    """Least singular value Omega(scale)."""
    return Fact("sigma_min", subjects, as_scale(scale))


def uniformly_integrable(expr: Any, scale: Any) -> Fact:
    """||M||/scale uniformly integrable."""
    return Fact("uniformly_integrable", (expr,), as_scale(scale))


def chaos_degree(degree: int, *subjects: Any) -> Fact:
    """A polynomial of fixed degree in independent Gaussians."""
    return Fact("chaos_degree", subjects, number=degree)


def second_moment(scale: Any, *subjects: Any, frobenius: bool = False) -> Fact:
    """E ||M||^2 = Theta(scale), exactly of that order; of ||M||_F with ``frobenius``, which two and more slots need (R8c)."""
    return Fact("frobenius_moment" if frobenius else "second_moment", subjects, as_scale(scale))


def variance(scale: Any, *subjects: Any) -> Fact:
    """E ||M - E M||^2 = O(scale)."""
    return Fact("variance", subjects, as_scale(scale))


def fact(name: str, *subjects: Any, scale: Any = None, number: Any = None, index: str | None = None) -> Fact:
    """Any other fact of `FACTS` by its name."""
    return Fact(name, subjects, None if scale is None else as_scale(scale), number, index)


def bounded_fact(name: str, bound: Bound, *subjects: Any) -> Fact:
    """A fact that carries a bound: ``nuclear`` or ``diagonal_bound``."""
    return Fact(name, subjects, bound=bound)
