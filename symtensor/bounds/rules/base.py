"""What a rule is, and the call through which it reads premises and facts: everything it relies on is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import MissingHypothesisError
from ..expr import Expr
from ..facts import SYMMETRIC, Fact, subject_key
from ..modes import DET, Kind, Mode, P, Uniform
from ..scale import Comparison, Scale
from ..value import Bound, Condition, Grouping, Step

__all__ = ["RULES", "Call", "Given", "Rule", "conclude", "rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by its identifier, statement, hypotheses and what goes wrong without them.

    ``variants`` are its forms, strongest first; each is a tuple of flags that the function reads.
    """

    id: str
    statement: str
    hypotheses: tuple[str, ...]
    counterexample: str
    function: Callable[[Call], Bound]
    variants: tuple[tuple[str, ...], ...] = ((),)
    tight: str = ""


RULES: dict[str, Rule] = {}


def rule(
    id: str,
    statement: str,
    hypotheses: Iterable[str] = (),
    counterexample: str = "",
    variants: tuple[tuple[str, ...], ...] = ((),),
    tight: str = "",
) -> Callable[[Callable[[Call], Bound]], Callable[[Call], Bound]]:
    """Register a function as the rule ``id``."""

    def register(function: Callable[[Call], Bound]) -> Callable[[Call], Bound]:
        RULES[id] = Rule(id, statement, tuple(hypotheses), counterexample, function, variants, tight)
        return function

    return register


class Given:
    """The facts that are available, found by name."""

    __slots__ = ("by_name",)

    def __init__(self, facts: Iterable[Fact]) -> None:
        self.by_name: dict[str, list[Fact]] = {}
        for item in facts:
            self.by_name.setdefault(item.name, []).append(item)

    def find(self, name: str, *subjects: Any, index: str | None = None, number: Any = None) -> Fact | None:
        """The first fact of this name about these subjects, with this index and number if given.

        Independence and negative association are symmetric; every other relation holds in the stated order only.
        """
        wanted = tuple(subject_key(subject) for subject in subjects)
        keys = set(wanted)
        if len(keys) < len(wanted):
            return None  # nothing is independent of itself
        for item in self.by_name.get(name, ()):
            about = keys <= set(item.subjects) if len(wanted) < 2 or name in SYMMETRIC else wanted == item.subjects
            if about and index in (None, item.index) and number in (None, item.number):
                return item
        return None

    def plus(self, *facts: Fact) -> Given:
        """With further facts."""
        return Given((*(item for items in self.by_name.values() for item in items), *facts))

    def all(self, name: str, subject: Any) -> list[Fact]:
        """All facts of this name about one subject."""
        if name not in self.by_name:
            return []
        key = subject_key(subject)
        return [item for item in self.by_name[name] if key in item.subjects]


@dataclass(slots=True)
class Call:
    """One application of a rule to a node: premises, facts, flags; it records what the rule consumes."""

    rule: str
    node: Expr
    premises: tuple[Bound, ...]
    given: Given
    variant: tuple[str, ...]
    grouping: Grouping
    extra: Any = None
    used: list[Fact] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)

    def missing(self, hypothesis: str, subject: Any, fix: str) -> MissingHypothesisError:
        """The refusal of this rule."""
        return MissingHypothesisError(self.rule, hypothesis, subject, fix, RULES[self.rule].counterexample)

    def use(self, *facts: Fact) -> None:
        """Record facts as hypotheses of this step."""
        self.used.extend(item for item in facts if item not in self.used)

    def require(self, name: str, *subjects: Any, fix: str, index: str | None = None, number: Any = None) -> Fact:
        """A fact that must be known."""
        found = self.given.find(name, *subjects, index=index, number=number)
        if found is None:
            raise self.missing(name, ", ".join(map(str, subjects)), fix)
        self.use(found)
        return found

    def need(self, what: str, premise: int, name: str, holds: bool, fix: str) -> None:
        """A condition on one premise."""
        if not holds:
            raise self.missing(name, self.part(premise), fix)
        self.conditions.append(Condition(what, premise, name))

    def plain_norm(self, what: str) -> None:
        """Facts about ||M|| without further words are about the norm with every slot on its own."""
        if any(len(block) > 1 for block in self.grouping):
            shown = "|".join(map(" ".join, self.grouping))
            fix = "state known(f, grouping=..) for that norm, or use coarser(M) (N6)"
            raise self.missing(f"{what} in the norm over {shown}", self.node, fix)

    def part(self, premise: int) -> Any:
        """The expression of a premise, for messages."""
        step = self.premises[premise].step
        return step.subject if step is not None else self.node

    def need_mode(self, premise: int, mode: Mode, fix: str) -> None:
        """The premise holds in a mode at least this strong."""
        if mode != P:
            self.need("mode", premise, f"mode {mode}", self.premises[premise].mode.implies(mode), fix)

    def need_moment(self, premise: int, k: Any, fix: str) -> None:
        """E ||M||^k = O(f^k) for the premise."""
        self.need("mode", premise, f"mode L^{k}", self.premises[premise].mode.moment(k), fix)

    def need_uniform(self, premise: int, index: str, level: int, fix: str) -> None:
        """The premise is uniform over an index, if it depends on it."""
        step = self.premises[premise].step
        if step is not None and not step.subject.depends_on(index):
            return
        holds = self.premises[premise].uniformity(index) >= level
        self.need("uniform", premise, f"U{level}({index})", holds, fix)

    def need_upper(self, premise: int) -> None:
        """The premise bounds from above."""
        if not self.premises[premise].kind.upper:
            raise self.missing("upper bound O", self.part(premise), "an Omega bound does not bound from above; state O too")

    def need_lower(self, premise: int, fix: str = "state a Theta or Omega bound") -> None:
        """The premise bounds from below."""
        self.need("lower", premise, "lower bound Omega", self.premises[premise].kind.lower, fix)

    def conclude(self, scale: Scale, kind: Kind, mode: Mode, uniform: Iterable[Uniform] | None = None) -> Bound:
        """The conclusion: uniform in every index in which all dependent premises are, upper status inherited."""
        found = shared_uniformity(self.node, self.premises) if uniform is None else tuple(uniform)
        upper = any(bound.norm_status == "upper" for bound in self.premises)
        status = "upper" if upper and not kind.lower else "exact"
        return Bound(scale, kind, mode, found, self.grouping, status)


def shared_uniformity(node: Expr, premises: tuple[Bound, ...]) -> tuple[Uniform, ...]:
    """For each index of the node the weakest uniformity among the premises that depend on it."""
    if not node.family:
        return ()
    found = []
    for index, _ in node.family:
        levels = [p.uniformity(index) for p in premises if p.step is None or p.step.subject.depends_on(index)]
        if levels and min(levels):
            found.append(Uniform(min(levels), index))
    return tuple(found)


def conclude(step: Step) -> Bound:
    """Run the rule of a step on its stored premises and facts."""
    call = Call(step.rule, step.subject, step.premises, Given(step.facts), step.variant, step.grouping, step.extra)
    return RULES[step.rule].function(call)


def apply_rule(id: str, node: Expr, premises: tuple[Bound, ...], given: Given, grouping: Grouping, extra: Any = None) -> Bound:
    """The bound by the strongest form of the rule whose hypotheses hold; the refusal of the closest form otherwise."""
    refusal: MissingHypothesisError | None = None
    reached = -1
    for variant in RULES[id].variants:
        call = Call(id, node, premises, given, variant, grouping, extra)
        try:
            found = RULES[id].function(call)
        except MissingHypothesisError as error:
            progress = len(call.used) + len(call.conditions)
            if progress >= reached:  # the form that came closest speaks
                refusal, reached = error, progress
            continue
        step = Step(id, node, premises, tuple(call.used), tuple(call.conditions), variant, grouping, extra)
        return replace(found, provenance=step)
    assert refusal is not None
    raise refusal


def weakest_mode(premises: Iterable[Bound]) -> Mode:
    """Mode of a sum."""
    return Mode.weakest(bound.mode for bound in premises)


def strictly_below(low: Bound, high: Scale) -> bool:
    """Whether a premise is o(high): its scale is, or it is o(f) with f = O(high)."""
    if low.kind is Kind.SMALL_O and low.scale.within(high):
        return True
    return low.scale.compare(high) is Comparison.LESS


def is_constant(scale: Scale) -> bool:
    """Whether a size does not grow."""
    return scale == Scale.one()


def certain(bound: Bound) -> bool:
    """Whether the bound is deterministic."""
    return bound.mode == DET
