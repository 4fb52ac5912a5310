"""`bound`: the order of an expression, by the rules, with every step recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from .errors import ContradictionError, MissingHypothesisError
from .expr import Expr, as_expr
from .facts import Fact
from .modes import Kind
from .plans import Plan, plans, singletons
from .rules.base import Given, apply_rule, strictly_below
from .rules.ground import limit_value
from .rules.norms import canonical
from .value import Bound, Grouping, check_blocks

__all__ = ["Deriver", "bound"]

Outcome = Bound | MissingHypothesisError
Key = tuple[int, Grouping]
_SHARED = ("leaf", "fluctuation", "entry")
_SHARPER = ("R11b", "R11c", "R10")
_CERTAIN = ("N1", "N2")


def bound(expr: Any, assume: Iterable[Fact] = (), grouping: Sequence[Sequence[str]] | None = None) -> Bound:
    """The stochastic order of an expression, derived from the facts about its tensors and from ``assume``.

    Args:
        expr: an expression over random tensors.
        assume: further facts: `independent(u, v)`, `known(f, of=expr)`, `uniformly_integrable(expr, f)`, ...
        grouping: blocks of slots that share one unit vector; singletons (the subordinate norm) by default, one block is
            the Frobenius norm.

    Returns
    -------
    Bound
        With its derivation: ``.tree()``, ``.latex()``, ``.check()``. Where several rules apply the sharpest wins.

    Raises:
        MissingHypothesisError: no rule applies; names the rule, the hypothesis, the subject and the fix.
        ScaleError: a scale outside the group.

    Example:
        >>> from symtensor.bounds import RandomTensor, expectation, known, moment
        >>> x = RandomTensor("x", facts=[known("log n")])
        >>> bound(2 * x + 1)
        O(log n) [P], n -> oo
        >>> bound(expectation(x))
        Traceback (most recent call last):
        ...
        symtensor.bounds.errors.MissingHypothesisError: rule R8a needs 'uniformly_integrable' of x. Fix: ...
    """
    return Deriver(as_expr(expr), assume).bound(grouping)


class Deriver:
    """One derivation: facts, and the outcome for each (node, norm) that was asked for.

    Attributes:
        outcomes: bound or refusal by (node, grouping); its length is the number of rule applications that count.
    """

    __slots__ = ("expr", "given", "outcomes")

    def __init__(self, expr: Expr, assume: Iterable[Fact] = ()) -> None:
        self.expr = expr
        facts = [fact for tensor in _tensors(expr).values() for fact in tensor.facts]
        for fact in assume:
            if not isinstance(fact, Fact):
                raise TypeError(f"assume takes facts such as independent(u, v), not {fact!r}")
            if not fact.subjects:
                raise ValueError(f"the assumption '{fact}' names no tensor: say what it is about, e.g. centred(W)")
            facts.append(fact)
        self.given = Given(facts)
        _exclusive(self.given)
        self.outcomes: dict[Key, Outcome] = {}

    def bound(self, grouping: Sequence[Sequence[str]] | None = None) -> Bound:
        """The bound of the expression in the norm of ``grouping``."""
        blocks = singletons(self.expr) if grouping is None else canonical([tuple(block) for block in grouping])
        check_blocks(blocks, self.expr.labels)
        found = self._resolve(self.expr, blocks)
        if isinstance(found, MissingHypothesisError):
            raise found
        return found

    def _resolve(self, expr: Expr, grouping: Grouping) -> Outcome:
        """Premises first, without recursion: expressions may be thousands of nodes deep."""
        stack: list[tuple[Expr, Grouping, list[Plan] | None]] = [(expr, grouping, None)]
        while stack:
            node, blocks, ready = stack.pop()
            key = (id(node), blocks)
            if key in self.outcomes:
                continue
            if ready is not None:
                self.outcomes[key] = self._decide(node, blocks, ready)
                continue
            found = plans(node, blocks, self.given)
            stack.append((node, blocks, found))
            for plan in found:
                stack.extend((child, norm, None) for child, norm in plan.premises if (id(child), norm) not in self.outcomes)
        return self.outcomes[id(expr), grouping]

    def _decide(self, node: Expr, grouping: Grouping, candidates: list[Plan]) -> Outcome:
        best: Bound | None = None
        reached: list[Bound] = []
        refused: list[tuple[Plan, MissingHypothesisError]] = []
        for plan in candidates:
            found = self._apply(plan, node, grouping)
            if isinstance(found, MissingHypothesisError):
                refused.append((plan, found))
                continue
            reached.append(found)
            if best is None or _sharper(found, best):
                best = found
        if best is None:
            return _refusal(refused)
        _consistent(node, reached)
        best = self._uniform(node, best)
        if best.step is not None and refused:
            notes = [f"{e.rule} (needs '{e.hypothesis}' of {e.subject})" for p, e in refused if p.rule in _SHARPER]
            best = replace(best, provenance=replace(best.step, declined=_once(notes)))
        return best

    def _apply(self, plan: Plan, node: Expr, grouping: Grouping) -> Outcome:
        premises = []
        for child, norm in plan.premises:
            outcome = self.outcomes[id(child), norm]
            if isinstance(outcome, MissingHypothesisError):
                return _grouped(node, child, outcome) if plan.rule == "N3" else outcome
            premises.append(outcome)
        try:
            return apply_rule(plan.rule, node, tuple(premises), self.given, grouping, plan.extra)
        except MissingHypothesisError as error:
            return error

    def _uniform(self, node: Expr, found: Bound) -> Bound:
        """Members of one law share their constants."""
        if node.op not in _SHARED:
            return found
        for index, _ in node.family:
            if not found.uniformity(index):
                try:
                    found = apply_rule("U1", node, (found,), self.given, found.grouping, index)
                except MissingHypothesisError:
                    continue
        return found


def _tensors(expr: Expr) -> dict[str, Any]:
    """Random tensors of an expression by name; one name is one tensor."""
    found: dict[str, Any] = {}
    stack, done = [expr], {id(expr)}
    while stack:
        node = stack.pop()
        if node.op == "leaf" and found.setdefault(node.data.name, node.data) is not node.data:
            raise ValueError(f"two different tensors are called {node.data.name!r}; a name stands for one random tensor")
        for child in node.children:
            if id(child) not in done:
                done.add(id(child))
                stack.append(child)
    return found


def _exclusive(given: Given) -> None:
    """Refuse what is certain and random at once, and two limits of one scalar."""
    pairs = [
        (first, second)
        for first in given.by_name.get("deterministic", ())
        for name in ("gaussian", "fixed_law")
        for second in given.by_name.get(name, ())
    ]
    limits = given.by_name.get("converges_to", ())
    pairs += [(a, b) for i, a in enumerate(limits) for b in limits[:i] if limit_value(a) != limit_value(b)]
    for first, second in pairs:
        both = [subject for subject in first.subjects if subject in second.subjects]
        if both:
            raise ContradictionError(str(both[0]), f"'{first}'", f"'{second}'")


def _consistent(node: Expr, reached: list[Bound]) -> None:
    """Two sound bounds of one norm agree; if one lies strictly above the other, the facts behind them exclude each other."""
    for low in reached:
        for high in reached:
            if low.kind.lower and high.kind.upper and strictly_below(high, low.scale):
                raise ContradictionError(str(node), _stated(low), _stated(high))


def _once(notes: list[str]) -> tuple[str, ...]:
    """One note for each rule: a rule that may take either factor is left out for one reason."""
    return tuple({note.split(" ", 1)[0]: note for note in reversed(notes)}.values())[::-1]


def _stated(found: Bound) -> str:
    """A bound with the facts it rests on."""
    facts = dict.fromkeys(str(fact) for part in found.derivation() if part.step is not None for fact in part.step.facts)
    quoted = ", ".join(f"'{text}'" for text in facts)
    return f"{found} from {quoted}" if facts else str(found)


def _sharper(new: Bound, old: Bound) -> bool:
    """Upper before lower, smaller scale, two-sided, stronger mode, more uniform, in this order."""
    if new.kind.upper != old.kind.upper:
        return new.kind.upper
    smaller, larger = new.scale.within(old.scale), old.scale.within(new.scale)
    if not new.kind.upper:
        smaller, larger = larger, smaller
    if smaller != larger:
        return smaller
    if not smaller:
        return False
    rank = {Kind.OMEGA: 0, Kind.O: 1, Kind.SMALL_O: 2, Kind.THETA: 3}
    if rank[new.kind] != rank[old.kind]:
        return rank[new.kind] > rank[old.kind]
    return new.mode != old.mode and new.mode.implies(old.mode)


def _grouped(node: Expr, child: Expr, error: MissingHypothesisError) -> MissingHypothesisError:
    """A grouped norm that is not known: N3 offers its two alternatives."""
    from .rules.norms import _BOTH

    if not error.hypothesis.startswith("a bound in the norm over") and error.rule != "A":
        return error
    pairs = " ".join(node.data)
    return MissingHypothesisError("N3", f"grouped norm over ({pairs})", child, _BOTH, "<I_n, I_n> = n, norm(I) norm(I) = 1")


def _refusal(refused: list[tuple[Plan, MissingHypothesisError]]) -> MissingHypothesisError:
    """The refusal of the operation's first rule, with those of the alternatives."""
    # the rules for certain factors have a random twin, which speaks for both
    by_rule = [error for plan, error in refused if not plan.stated and plan.rule not in _CERTAIN] or [error for _, error in refused]
    distinct = list({id(error): error for error in by_rule}.values())
    main, others = distinct[0], distinct[1:]
    return main.with_others(others) if others else main
