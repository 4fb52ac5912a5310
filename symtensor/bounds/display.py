"""Expressions and derivations on paper: text tree, LaTeX, HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

import sympy

from .expr import Expr
from .value import Bound, Step

__all__ = ["describe", "html_step", "html_tree", "latex_of", "latex_tree", "text_tree"]

DEPTH = 6
SHOWN = 4
_QUAD = r"\quad "


def describe(node: Expr, depth: int = DEPTH) -> str:
    """The expression as text; parts deeper than ``depth`` are written as ``...``."""
    if depth == 0:
        return "..."
    if not node.children:
        return _ATOMS[node.op](node)
    parts = [describe(child, depth - 1) for child in node.children[:SHOWN]]
    if len(node.children) > SHOWN:
        parts.append(f"... ({len(node.children)} in all)")
    return _WRITERS[node.op](node, parts)


_ATOMS: dict[str, Callable[[Expr], str]] = {
    "leaf": lambda node: node.data.name + (f"[{','.join(node.labels)}]" if node.labels else ""),
    "number": lambda node: str(node.data),
    "scale": lambda node: str(node.data),
    "oterm": lambda node: f"{node.data.kind.value}({node.data.scale})",
    "rest": lambda node: "1",
}


def _call(name: str) -> Callable[[Expr, list[str]], str]:
    return lambda node, parts: f"{name}({', '.join(parts)})"


def _indexed(name: str) -> Callable[[Expr, list[str]], str]:
    return lambda node, parts: f"{name}_{node.data if isinstance(node.data, str) else node.data[0]}({parts[0]})"


def _labelled(name: str) -> Callable[[Expr, list[str]], str]:
    return lambda node, parts: f"{name}_{','.join(node.data)}({', '.join(parts)})"


_WRITERS: dict[str, Callable[[Expr, list[str]], str]] = {
    "sum": lambda node, parts: f"({' + '.join(parts)})",
    "scaled": lambda node, parts: f"-{parts[0]}" if str(node.data) == "-1" else f"({node.data}) {parts[0]}",
    "outer": lambda node, parts: " (x) ".join(parts),
    "contract": lambda node, parts: f"<{', '.join(parts)}>_{','.join(node.data)}",
    "contract_vectors": lambda node, parts: f"{parts[0]}[{', '.join(parts[1:])}]",
    "trace": _labelled("tr"), "power": lambda node, parts: f"||{parts[0]}||^({node.data[0]})",
    "apply": lambda node, parts: f"[{node.data}](x = {parts[0]})", "expectation": _call("E"),
    "fluctuation": lambda node, parts: f"({parts[0]} - E)", "max_of": _call("max"), "max_over": _indexed("max"),
    "sum_over": _indexed("sum"), "inverse": lambda node, parts: f"inv({parts[0]})",
    "inverse_remainder": _call("inverse_remainder"), "entry": _labelled("entry"), "assemble": _labelled("assemble"),
    "block_diagonal": _indexed("diag"), "integral": _indexed("int"), "derivative": _indexed("d"),
    "limit_over": _indexed("lim"), "given_event": lambda node, parts: f"({parts[0]} | {node.data})",
    "conditional": lambda node, parts: f"({parts[0]} given {node.data})",
    "reindexed": lambda node, parts: f"{parts[0]} at " + ", ".join(f"{k} = {v}" for k, v in node.data[0]),
    "iterate": lambda node, parts: f"[{node.data[0]}] iterated {node.data[1]} times from {parts[0]}",
    "dominated": lambda node, parts: f"{parts[0]} (dominated by {parts[1]})",
    "taylor": lambda node, parts: f"R_{node.data[2]}[{node.data[0]} at {node.data[1]}]({parts[0]})",
    "coarser": lambda node, parts: parts[0], "rest": _call("rest"),
}  # fmt: skip


def _walk(root: Bound) -> Iterator[tuple[Bound, int, bool]]:
    """Bounds with their depth, conclusion first; a bound that was shown before is marked, not repeated."""
    stack = [(root, 0)]
    seen: set[int] = set()
    while stack:
        bound, depth = stack.pop()
        again = id(bound) in seen and bound.step is not None and bool(bound.step.premises)
        seen.add(id(bound))
        yield bound, depth, again
        if bound.step is not None and not again:
            stack.extend((premise, depth + 1) for premise in reversed(bound.step.premises))


def _statement(bound: Bound) -> str:
    name = f"||{describe(bound.step.subject)}|| = " if bound.step is not None else ""
    return f"{name}{bound}"


def _reasons(bound: Bound) -> list[str]:
    step = bound.step
    if step is None:
        return []
    lines = [f"hypothesis: {fact}" for fact in step.facts]
    lines += [f"condition: {condition} of {_part(bound, condition.premise)}" for condition in step.conditions]
    return lines + [f"not used: {note}" for note in step.declined]


def _part(bound: Bound, premise: int) -> str:
    assert bound.step is not None
    step = bound.step.premises[premise].step
    return f"premise {premise + 1}" if step is None else describe(step.subject)


def text_tree(root: Bound) -> str:
    """One line per bound with its rule, indented under the bound it supports; hypotheses below it."""
    lines = []
    for bound, depth, again in _walk(root):
        pad = "  " * depth
        rule = f"   [{bound.step.rule}]" if bound.step is not None else f"   [{bound.provenance or 'stated'}]"
        lines.append(f"{pad}{_statement(bound)}{rule}" + (" (see above)" if again else ""))
        if not again:
            lines += [f"{pad}    {reason}" for reason in _reasons(bound)]
    return "\n".join(lines)


def latex_of(bound: Bound) -> str:
    """``\\mathcal{O}(\\sqrt{n})`` with mode and limit."""
    sizes = ",\\ ".join(rf"{sympy.latex(sympy.Symbol(name))} \to \infty" for name in bound.scale.sizes)
    limit = rf",\ {sizes}" if sizes else ""
    extra = "".join(rf",\ U_{{{u.level}}}({sympy.latex(sympy.Symbol(u.index))})" for u in bound.uniform)
    if any(len(block) > 1 for block in bound.grouping):
        extra += r",\ \text{norm over " + _tex("|".join("".join(block) for block in bound.grouping)) + "}"
    if bound.norm_status != "exact":
        extra += rf",\ \text{{{bound.norm_status} bound of the norm}}"
    return rf"{bound.kind.tex}\left({bound.scale.latex()}\right)\ \left[{bound.mode.tex}{extra}\right]{limit}"


def _tex(text: str) -> str:
    for character, written in (("\\", r"\textbackslash{}"), ("_", r"\_"), ("^", r"\^{}"), ("&", r"\&"), ("%", r"\%")):
        text = text.replace(character, written)
    return text


def latex_tree(root: Bound) -> str:
    """The derivation as an ``array``: bound, rule, hypotheses; conclusion first."""
    rows = []
    for bound, depth, again in _walk(root):
        name = "" if bound.step is None else rf"\text{{{_tex(describe(bound.step.subject))}}} = "
        rule = "stated" if bound.step is None else bound.step.rule
        reasons = "; ".join(_reasons(bound)) if not again else "see above"
        rows.append(_QUAD * depth + rf"{name}{latex_of(bound)} & \text{{{rule}}} & \text{{{_tex(reasons)}}}")
    return "\\begin{array}{lll}\n" + " \\\\\n".join(rows) + "\n\\end{array}"


def html_step(step: Step) -> str:
    """One step: rule, statement, subject; premises and hypotheses as a list."""
    lines = [f"premise: {_statement(premise)}" for premise in step.premises]
    lines += [f"hypothesis: {fact}" for fact in step.facts] + [f"condition: {condition}" for condition in step.conditions]
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    head = f"<b>{escape(step.rule)}</b> {escape(step.statement)}; on {escape(describe(step.subject))}"
    return f'<div class="symtensor-step">{head}<ul>{items}</ul></div>'


def html_tree(root: Bound) -> str:
    """Nested lists with rule statements as tooltips and hypotheses below."""
    parts = ['<div class="symtensor-bound">']
    level = -1
    for bound, depth, again in _walk(root):
        if depth > level:
            parts.append("<ul>")
        else:
            parts.append("</li>" + "</ul></li>" * (level - depth))
        level = depth
        step = bound.step
        rule = ("stated", "") if step is None else (step.rule, step.statement)
        mark = " (see above)" if again else ""
        parts.append(f'<li>{escape(_statement(bound))} <b title="{escape(rule[1])}">{escape(rule[0])}</b>{mark}')
        if not again:
            parts.extend(f"<br><small>{escape(reason)}</small>" for reason in _reasons(bound))
    return "".join(parts) + "</li></ul>" * (level + 1) + "</div>"
