r"""Diagram sums as steps of a derivation: each diagram with its factor, the sum, the check by the second route."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.derivation.model import Check, CheckOutcome, Drawing, Equation, Step

if TYPE_CHECKING:
    from symtensor.fields import DiagramSum, FieldTheory

__all__ = ["diagram_step", "drawings", "rounded", "rules_step", "second_route"]

#: more drawings than this are not shown in one step
SHOWN = 60


def rules_step(theory: FieldTheory) -> Step:
    """The rules: action, saddle, propagators, vertices, conventions."""
    density = sp.latex(theory.density, symbol_names=theory.symbol_names)
    equations = [Equation(rf"\mathcal{{V}} = {density}" if theory.stochastic else rf"\mathcal{{V}} = -S = {density}")]
    saddle = zip(theory.fields, theory.saddle)
    equations += [Equation(rf"{sp.latex(x)}^* = {sp.latex(rounded(sp.sympify(v), 8))}") for x, v in saddle]
    equations += [Equation(latex) for latex in theory.propagators_latex()]
    tensors = theory.tensors(4)
    equations += [
        Equation(rf"v_{{{_legs(theory, tensor.legs)}}} = {sp.latex(rounded(next(iter(tensor.entries.values())), 8))}")
        for tensor in tensors
        if len(set(tensor.entries.values())) == 1
    ]
    text = "\n\n".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in theory.conventions_latex)
    return Step("Rules", text, tuple(equations))


def _legs(theory: FieldTheory, legs: tuple[str, ...]) -> str:
    """The legs of a vertex in LaTeX, as powers: x^{3} xt."""
    names = {str(symbol): latex for symbol, latex in theory.symbol_names.items()}
    counted = Counter(legs)
    written = {leg: names.get(leg) or str(sp.latex(sp.Symbol(leg))) for leg in counted}
    return r"\,".join(written[leg] + (f"^{{{n}}}" if n > 1 else "") for leg, n in counted.items())


def rounded(expression: Any, digits: int = 0) -> Any:
    """Decimal numbers with this many digits; 0 leaves them as they are."""
    return expression.xreplace({n: sp.Float(n, digits) for n in expression.atoms(sp.Float)}) if digits else expression


def drawings(total: DiagramSum, digits: int = 0) -> tuple[Drawing, ...]:
    """Each diagram with its formula and value (decimal numbers with `digits` digits)."""
    found = []
    for term in total:
        if len(found) == SHOWN:
            break
        formula = (term.latex(), f"= {sp.latex(rounded(term.expr, digits))}")
        found.append(Drawing(term.diagram.to_svg(), formula, f"symmetry factor {term.symmetry_factor}"))
    return tuple(found)


def diagram_step(
    total: DiagramSum, title: str, text: str = "", name: str = "", checks: Iterable[Check] = (), digits: int = 0
) -> Step:
    """One order of a function: its diagrams and their sum. `name` is the LaTeX of what is summed; `digits` as for `drawings`."""
    count = len(total)
    more = f" The first {SHOWN} are drawn." if count > SHOWN else ""
    legs = ", ".join(f"{at + 1} is {name}" for at, name in enumerate(str(total.legs).split()))
    prose = f"{text} {count} diagram{'' if count == 1 else 's'}; leg {legs}.{more}".strip()
    equation = Equation(rf"{name or total.latex_name()} = {sp.latex(rounded(total.expr, digits))}")
    return Step(title, prose, (equation,), tuple(checks), drawings(total, digits))


def second_route(total: DiagramSum, name: str = "", statement: str = "") -> Check:
    """The check of a whole sum by a route without diagrams."""

    def run() -> CheckOutcome:
        return CheckOutcome(True, str(total.verify()))  # a difference raises, and the check has failed

    default = "every order equals the result of a route without diagrams, exactly"
    return Check(name or f"second route of {total.title}", statement or default, run)
