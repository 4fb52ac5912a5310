"""The refusal of a rule: it names the rule, the hypothesis, the subject, the fix and what goes wrong without it."""

from __future__ import annotations

from typing import Any

__all__ = ["ContradictionError", "MissingHypothesisError"]


class ContradictionError(ValueError):
    """Facts that exclude each other: one bounds a norm from below, another one strictly below that; anything would follow."""

    def __init__(self, subject: str, lower: str, upper: str) -> None:
        super().__init__(f"the facts about {subject} contradict each other: {lower}; and {upper}. Drop or correct one of them.")


class MissingHypothesisError(ValueError):
    """A rule whose hypothesis is not known; nothing is concluded.

    Attributes:
        rule: identifier, such as ``"N3"``.
        hypothesis: what is missing, by name.
        subject: the tensor, expression or event it is about, as text.
        fix: what to state or to do instead.
        counterexample: what is false without the hypothesis.
        others: refusals of the other rules that were tried.
    """

    def __init__(self, rule: str, hypothesis: str, subject: Any, fix: str, counterexample: str = "", others: Any = ()) -> None:
        self.rule = rule
        self.hypothesis = hypothesis
        self.subject = str(subject)
        self.fix = fix
        self.counterexample = counterexample
        self.others: tuple[MissingHypothesisError, ...] = tuple(others)
        text = f"rule {rule} needs '{hypothesis}' of {self.subject}. Fix: {fix}."
        if counterexample:
            text += f" Without it: {counterexample}."
        for other in self.others:
            text += f" Also tried {other.rule}, which needs '{other.hypothesis}' of {other.subject} ({other.fix})."
        super().__init__(text)

    def with_others(self, others: Any) -> MissingHypothesisError:
        """The same refusal with those of the alternatives."""
        return MissingHypothesisError(self.rule, self.hypothesis, self.subject, self.fix, self.counterexample, others)
