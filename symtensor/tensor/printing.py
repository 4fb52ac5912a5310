"""Text and LaTeX of terms. The text is Python: it reads back with heads, indices and symbols defined."""

from __future__ import annotations

import re
from collections.abc import Sequence

import sympy

from symtensor.tensor.index import Slot
from symtensor.tensor.term import Factor, Term


def text(terms: Sequence[Term]) -> str:
    """`2*K[a, b] - x*(K[a, i]*Q[i, b]).sum(i)`; the zero tensor is `0`."""
    return _joined([_signed(term.coefficient, _text_product(term), str, "*") for term in terms])


def latex(terms: Sequence[Term]) -> str:
    r"""`2 {K}_{ab} - x \sum_{i} {K}_{ai} {Q}_{ib}`; the zero tensor is `0`."""
    return _joined([_signed(term.coefficient, _latex_product(term), sympy.latex, " ") for term in terms])


def _text_product(term: Term) -> str:
    product = "*".join(map(_text_factor, term.factors))
    return f"({product}).sum({', '.join(map(str, term.summed))})" if term.summed else product


def _text_factor(factor: Factor) -> str:
    slots = ", ".join(map(str, factor.indices)) or "()"
    return f"delta({slots})" if factor.tensor.is_delta else f"{factor.tensor}[{slots}]"


def _latex_product(term: Term) -> str:
    product = " ".join(map(_latex_factor, term.factors))
    return rf"\sum_{{{','.join(map(_latex_slot, term.summed))}}} {product}" if term.summed else product


def _latex_factor(factor: Factor) -> str:
    slots = [_latex_slot(slot) for slot in factor.indices]
    separator = "" if all(len(slot) == 1 for slot in slots) else ","
    head = factor.tensor.latex or _latex_name(factor.tensor.name)
    return f"{{{head}}}_{{{separator.join(slots)}}}" if slots else f"{{{head}}}"


def _latex_slot(slot: Slot) -> str:
    return str(slot) if isinstance(slot, int) else _latex_name(slot.name)


def _latex_name(name: str) -> str:
    """SymPy's reading of names: alpha is a Greek letter, K_0 and i1 have subscripts."""
    return sympy.latex(sympy.Symbol(re.sub(r"_+", "_", name).strip("_") or name.replace("_", r"\_")))


def _signed(coefficient: sympy.Expr, product: str, show, times: str) -> tuple[bool, str]:
    """Whether the term is subtracted, and its text without sign."""
    negative = all(part.could_extract_minus_sign() for part in sympy.Add.make_args(coefficient))
    magnitude = -coefficient if negative else coefficient
    if magnitude == 1:
        return negative, product or "1"
    shown = show(magnitude)
    if not product:
        return negative, shown
    if magnitude.is_Add:
        shown = f"({shown})" if times == "*" else rf"\left({shown}\right)"
    return negative, f"{shown}{times}{product}"


def _joined(parts: list[tuple[bool, str]]) -> str:
    if not parts:
        return "0"
    first = ("-" if parts[0][0] else "") + parts[0][1]
    return first + "".join((" - " if negative else " + ") + shown for negative, shown in parts[1:])
