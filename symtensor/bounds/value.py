"""The value a rule produces: a bound with its sense, and the derivation behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .modes import DET, PSI2, Kind, L, Mode, P, Uniform
from .scale import Scale, as_scale

if TYPE_CHECKING:
    from .expr import Expr
    from .tensors import Fact

__all__ = ["DET", "PSI2", "Bound", "DerivationError", "Grouping", "Kind", "L", "Mode", "P", "Step"]

Grouping = tuple[tuple[str, ...], ...]
STATUSES = ("exact", "lower", "upper")


def check_blocks(grouping: Any, slots: Iterable[str] | None = None) -> None:
    """Refuse blocks that are empty or overlap, or that are no partition of ``slots``: they define no norm.

    Raises:
        ValueError: naming the blocks and the slots.
    """
    blocks = [(block,) if isinstance(block, str) else tuple(block) for block in grouping]
    stated = [label for block in blocks for label in block]
    if len(set(stated)) < len(stated) or not all(blocks):
        raise ValueError(f"the grouping {tuple(blocks)} has a slot twice or an empty block; it is a partition of the slots")
    if slots is not None and set(stated) != set(slots):
        raise ValueError(f"the grouping {tuple(blocks)} must contain each slot once: {tuple(slots)}")


class DerivationError(ValueError):
    """A step whose rule, run again on the stored premises, does not give the stored bound."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a rule asks of one premise: ``what`` is mode, uniform, lower, upper or vanishing."""

    what: str
    premise: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One application of a rule: premises, consumed facts, and the conditions on the premises.

    Attributes:
        rule: identifier, such as ``"R8a"``.
        subject: the expression that is bounded.
        premises: bounds of its parts, in the rule's order.
        facts: hypotheses taken from the user (facts of tensors and assumptions).
        conditions: hypotheses about premises (their mode, uniformity, lower bound).
        variant: which form of the rule, by its flags.
        grouping: slots of the subject's norm.
        extra: what the derivation chose, such as a moment order.
        declined: sharper rules that were tried, with the hypothesis each of them lacks.
    """

    rule: str
    subject: Expr
    premises: tuple[Bound, ...]
    facts: tuple[Fact, ...]
    conditions: tuple[Condition, ...] = ()
    variant: tuple[str, ...] = ()
    grouping: Grouping = ()
    extra: Any = None
    declined: tuple[str, ...] = ()

    @property
    def hypotheses(self) -> tuple[Any, ...]:
        """Everything that, if dropped, makes `check` raise."""
        return (*self.facts, *self.conditions)

    @property
    def statement(self) -> str:
        """The rule in words."""
        from .rules import RULES

        return RULES[self.rule].statement

    def check(self) -> Bound:
        """Run the rule again on the stored premises and facts alone.

        Raises:
            MissingHypothesisError: a side condition does not hold; it is named.
        """
        from .rules import conclude

        return conclude(self)

    def without(self, hypothesis: Any) -> Step:
        """The same step with one hypothesis dropped: a fact removed, or a premise weakened."""
        if hypothesis in self.facts:
            return replace(self, facts=tuple(fact for fact in self.facts if fact is not hypothesis))
        if hypothesis not in self.conditions:
            raise ValueError(f"{hypothesis} is no hypothesis of this step of {self.rule}")
        premises = list(self.premises)
        premises[hypothesis.premise] = premises[hypothesis.premise].weakened(hypothesis.what)
        return replace(self, premises=tuple(premises))

    def _repr_html_(self) -> str:
        from .display import html_step

        return html_step(self)


@dataclass(frozen=True, slots=True)
class Bound:
    """||M||_grouping = kind(scale) in a mode, uniformly in indices if stated.

    Attributes:
        scale: the growth scale, a `Scale` (text is read by `scale`).
        kind: O, o, Omega or Theta.
        mode: P, L(k), psi2 or det; it qualifies the upper half (Omega is always in probability unless det).
        uniform: the uniformities over family indices.
        grouping: the slots that share one Euclidean unit vector; () if not stated (the singletons).
        norm_status: exact, or the number behind it is only a lower or an upper bound of the norm.
        definite: ``"proved"`` or ``None``; Theta proves it, a certificate of `definite_bound` too.
        provenance: the `Step`, or words for an assumed or measured bound.

    Raises:
        ValueError: an upper statement from a lower bound of the norm or conversely; a claim ``definite`` without proof.

    Example:
        >>> Bound("sqrt(n)", "Theta", PSI2)
        Theta(sqrt(n)) [psi2], n -> oo
    """

    scale: Scale
    kind: Kind = Kind.O
    mode: Mode = P
    uniform: tuple[Uniform, ...] = ()
    grouping: Grouping = ()
    norm_status: str = "exact"
    definite: str | None = None
    provenance: Step | str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        given = self.uniform
        object.__setattr__(self, "scale", as_scale(self.scale))
        object.__setattr__(self, "kind", Kind(self.kind))
        object.__setattr__(self, "uniform", (given,) if isinstance(given, Uniform) else tuple(given or ()))
        check_blocks(self.grouping)
        if self.norm_status not in STATUSES:
            raise ValueError(f"norm_status is one of {', '.join(STATUSES)}, not {self.norm_status!r}")
        if self.norm_status == "lower" and self.kind.upper:
            raise ValueError(f"a lower bound of the norm supports Omega only, not {self.kind.value}; give an upper one")
        if self.norm_status == "upper" and self.kind.lower:
            raise ValueError(f"an upper bound of the norm supports O and o only, not {self.kind.value}")
        if self.kind is Kind.THETA and self.definite is None:
            object.__setattr__(self, "definite", "proved")
        if self.definite not in (None, "proved"):
            raise ValueError(f"definite is 'proved' or None, not {self.definite!r}")
        if self.definite and self.kind is not Kind.THETA and self.provenance is None:
            raise ValueError("a definite bound needs a certificate: Theta, a limit law, or a Gaussian polynomial (R8c)")

    @property
    def step(self) -> Step | None:
        """The last step of the derivation, if there is one."""
        return self.provenance if isinstance(self.provenance, Step) else None

    def uniformity(self, index: str) -> int:
        """0, 1 (U1) or 2 (U2)."""
        return max((u.level for u in self.uniform if u.index == index), default=0)

    def weakened(self, what: str) -> Bound:
        """The bound with one strength removed: its mode, uniformity, lower half, upper half, or its vanishing."""
        if what == "mode":
            return replace(self, mode=P, definite=None)
        if what == "uniform":
            return replace(self, uniform=())
        if what == "lower":
            return replace(self, kind=Kind.O, definite=None)
        if what == "upper":
            return replace(self, kind=Kind.OMEGA, definite=None)
        if what == "vanishing":
            return replace(self, scale=Scale.one(), kind=Kind.O, definite=None)
        raise ValueError(f"nothing called {what!r} can be weakened")

    def check(self) -> None:
        """Run every step of the derivation again, premises first.

        Raises:
            MissingHypothesisError: a side condition does not hold; it is named.
            DerivationError: a step gives another bound than the stored one.
        """
        for bound in self.derivation():
            step = bound.step
            if step is None:
                continue
            found = step.check()
            if found != bound:
                raise DerivationError(f"{step.rule} on {step.subject} gives {found}, but {bound} is stored")

    def derivation(self) -> Iterator[Bound]:
        """All bounds of the derivation, premises first, each once."""
        done: set[int] = set()
        stack: list[tuple[Bound, bool]] = [(self, False)]
        while stack:
            bound, ready = stack.pop()
            if id(bound) in done:
                continue
            if ready:
                done.add(id(bound))
                yield bound
                continue
            stack.append((bound, True))
            if bound.step is not None:
                stack.extend((premise, False) for premise in reversed(bound.step.premises))

    @property
    def rules(self) -> tuple[str, ...]:
        """Identifiers of the rules used, premises first."""
        return tuple(bound.step.rule for bound in self.derivation() if bound.step is not None)

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """Mode, uniformity, grouping and status as words; what is plain is left out."""
        words = [repr(self.mode), *map(repr, self.uniform)]
        if any(len(block) > 1 for block in self.grouping):
            words.append("norm over " + "|".join("".join(block) for block in self.grouping))
        if self.norm_status != "exact":
            words.append(f"{self.norm_status} bound of the norm")
        return tuple(words)

    def __repr__(self) -> str:
        limit = f", {', '.join(self.scale.sizes)} -> oo" if self.scale.sizes else ""
        return f"{self.kind.value}({self.scale}) [{', '.join(self.qualifiers)}]{limit}"

    def tree(self) -> str:
        """The derivation as a text tree: statement, rule, hypotheses."""
        from .display import text_tree

        return text_tree(self)

    def latex(self) -> str:
        """The bound as LaTeX, with its mode and limit point."""
        from .display import latex_of

        return latex_of(self)

    def latex_tree(self) -> str:
        """The derivation as a LaTeX table."""
        from .display import latex_tree

        return latex_tree(self)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        from .display import html_tree

        return html_tree(self)
