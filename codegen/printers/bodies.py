"""Bodies of emitted functions: lowered values to lines of JAX text."""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import sympy as sp

from ..analyse import Signature
from ..gauss import gauss_hermite, gauss_legendre
from ..graph import Node
from ..ir import CompositeFunction, MomentFunction, Operand, Product, ScalarFunction, StageCall, Summand, TensorFunction
from ..passes import Schedule
from .base import Printer, number_text
from .jax import jax_printer
from .layout import WIDTH, Sum, assignment, call_lines, tuple_text

__all__ = ["composite_body", "moment_values", "scalar_body", "tensor_body"]

Results = list[tuple[str, str]]


def scalar_body(function: ScalarFunction, used: set[str]) -> tuple[list[str], Results]:
    """The stages, assignments of the schedule and (output, text)."""
    arguments = [argument.name for argument in function.arguments]
    stages = [line for stage in function.stages for line in _stage(stage, used)]
    lines, texts = _printed(function.plan, arguments[:1], used)
    return [*stages, *lines], list(zip((output.name for output in function.outputs), texts))


def _stage(stage: StageCall, used: set[str]) -> list[str]:
    """A local function, and the call that evaluates it once."""
    inner, results = _printed(stage.plan, [], used)
    parameters = ", ".join(f"{name}: Array" for name in stage.parameters)
    body = [*inner, *call_lines("return (", results, ",)" if len(results) == 1 else ")", WIDTH - 4)]
    targets = ", ".join(stage.targets) + ("," if len(stage.targets) == 1 else "")
    return [
        "",
        f"def {stage.function}({parameters}) -> tuple[Array, ...]:",
        *(f"    {line}" for line in body),
        "",
        f"{targets} = _once({', '.join([stage.function, *stage.parameters])})",
    ]


def _printed(plan: Schedule, like: list[str], used: set[str]) -> tuple[list[str], list[str]]:
    """Lines and results; a constant result takes the shape and type of the argument `like`."""
    printer = jax_printer()
    lines = printer.lines(plan)
    texts = []
    for node in plan.results:
        text = printer.float_text(node)
        texts.append(f"jnp.full_like({like[0]}, {text})" if node.op == "const" and like else text)
    used |= printer.used
    return [line for each in lines for name, _, value in [each.partition(" = ")] for line in assignment(name, value)], texts


# -- tensors -----------------------------------------------------------------------------------------------------------


def tensor_body(function: TensorFunction, used: set[str]) -> tuple[list[str], None]:
    """Loads, contractions, broadcasts, then `return` of one sum."""
    printer = jax_printer()
    lines = [f"{load.local} = {_load(load, printer)}" for load in function.loads]
    for step in function.contractions:
        spec = ",".join(step.letters) + "->" + step.output
        operands = ", ".join(step.operands)
        if step.pairs:
            lines.append(f'{step.local} = _symmetric_einsum("{spec}", "{" ".join(step.pairs)}", {operands})')
        else:
            lines.append(f'{step.local} = jnp.einsum("{spec}", {operands}, precision=lax.Precision.HIGHEST)')
    lines += [f'{spread.local} = _broadcast("{spread.letters}", {spread.source})' for spread in function.spreads]
    if function.mirrored:
        lines += assignment(function.half, _joined(_terms(function.mirrored, printer)))
    used |= printer.used
    return [*lines, *assignment("return", _total(function, printer))], None


def _load(load: Operand, printer: Printer) -> str:
    if load.source is None:
        text = f"jnp.eye({load.size}, dtype=bool)"
    else:
        text = load.source if load.image is None else printer.text(load.image)
    if not load.fixed:
        return text
    slots = ", ".join(":" if slot is None else str(slot) for slot in load.fixed)
    return f"{text if text.isidentifier() or load.source is None else f'({text})'}[{slots}]"


def _total(function: TensorFunction, printer: Printer) -> str | Sum:
    if not function.summands and not function.mirrored:
        names = ", ".join(["float", *(argument.name for argument in function.arguments)])
        return f"jnp.zeros({tuple_text(list(function.shape))}, jnp.result_type({names}))"
    terms = _terms(function.summands, printer)
    if function.mirrored:
        terms = [function.half, f"{function.half}.transpose{tuple_text(list(map(str, function.exchange)))}", *terms]
    total = _joined(terms)
    if function.covered or not function.shape:
        return total
    flat = total if isinstance(total, str) else total.flat()
    return f"jnp.broadcast_to({flat}, {tuple_text(list(function.shape))})"


def _terms(summands: Iterable[Summand], printer: Printer) -> list[str | Sum]:
    terms: list[str | Sum] = []
    for summand in summands:
        parts = [_part(number, products) for number, products in summand.parts]
        if summand.coefficient.op == "const" and summand.coefficient.value == 1:
            terms += _flattened(parts)
        else:
            terms.append(_scaled(_factor(summand.coefficient, printer), parts))
    return terms


def _joined(terms: list[str | Sum]) -> str | Sum:
    return terms[0] if len(terms) == 1 else Sum("", tuple(terms))


def _scaled(coefficient: str, parts: list[str | Sum]) -> str | Sum:
    """coefficient * (sum of parts)."""
    if len(parts) > 1:
        return Sum(coefficient, tuple(_flattened(parts)))
    (part,) = parts
    if isinstance(part, Sum):
        sign = "-" if part.prefix.startswith("-") else ""
        number = part.prefix.lstrip("-")
        return Sum(f"{sign}{number} * {coefficient}" if number else f"{sign}{coefficient}", part.terms)
    if part == "1":
        return coefficient
    return f"-{coefficient} * {part[1:]}" if part.startswith("-") else f"{coefficient} * {part}"


def _flattened(parts: list[str | Sum]) -> list[str | Sum]:
    """Sums without a factor dissolved into the sum they are in."""
    flat: list[str | Sum] = []
    for part in parts:
        flat += part.terms if isinstance(part, Sum) and not part.prefix else [part]
    return flat


def _part(number: Node, products: tuple[Product, ...]) -> str | Sum:
    """A rational number times a sum of products of arrays."""
    value = sp.sympify(number.value)
    texts = [" * ".join(product.factors) for product in products]
    if not any(texts):  # scalars only
        return number_text(value * len(texts))[0]
    sign = "-" if value.is_negative else ""
    size, strength = number_text(abs(value))
    size = "" if size == "1" else size if strength >= 4 else f"({size})"
    if len(texts) == 1:
        return f"{sign}{size} * {texts[0]}" if size else f"{sign}{texts[0]}"
    if not size:
        size = "1" if sign else ""
    return Sum(f"{sign}{size}", tuple(texts))


def _factor(node: Node, printer: Printer) -> str:
    text = printer.text(node)
    return f"({text})" if node.op == "add" else text


# -- composites --------------------------------------------------------------------------------------------------------


def composite_body(function: CompositeFunction, signature: Signature) -> tuple[list[str], Results]:
    """One call per line. A local that would hide a function it shares its name with gets an underscore."""
    called = {call.function for call in function.calls}
    local: dict[str, str] = {}
    lines = []
    for call in function.calls:
        arguments = ", ".join(_local(name, local) for name in call.arguments)
        local.update({target: f"{target}_" for target in call.targets if target in called})
        targets = ", ".join(_local(target, local) for target in call.targets)
        lines.append(f"{targets} = {call.function}({arguments})")
    return lines, [(value.name, _local(value.name, local)) for value in function.returns]


def _local(name: str, local: Mapping[str, str]) -> str:
    head, dot, field = name.partition(".")
    return local.get(head, head) + dot + field


# -- moments -----------------------------------------------------------------------------------------------------------


def moment_values(function: MomentFunction, used: set[str]) -> dict[str, Any]:
    """Everything that the moment templates need."""
    value_lines, value_results = _printed(function.value, ["x"], used)
    plan_lines, plan_results = ([], [])
    if function.plan is not None:
        like = ["x"] if function.method == "inside" else ["k12"]
        plan_lines, plan_results = _printed(function.plan, like, used)
    values = {
        "method": function.method,
        "rule": function.rule,
        "rule_text": function.method in ("inside", "hermite"),
        "latex": function.latex.replace('"', "'"),
        "value_lines": value_lines,
        "value_result": value_results[0],
        "plan_lines": plan_lines,
        "plan_results": plan_results,
        "orders": function.orders,
        "highest": max(max(i, j) for i, j in function.orders),
        "degree": function.degree,
        "tables": len(function.tables),
    }
    if function.method == "homogeneous":
        values["collinear"] = _ends(function)
    if function.method in ("inside", "hermite"):
        values |= _rule_values(function)
    return values


def _ends(function: MomentFunction) -> tuple[str, str]:
    up, down = (sp.sympify(node.value) for node in function.collinear)
    up_text, down_text = (number_text(value)[0] for value in (up, -down))
    return up_text, down_text + (".0" if down_text.lstrip("-").isdigit() else "")


def _rule_values(function: MomentFunction) -> dict[str, Any]:
    rule = function.rule
    if rule.kind == "trapezoid":
        step = sp.Rational(2) * sp.Rational(str(rule.radius)) / (rule.n - 1)
        middle = sp.Rational(rule.n - 1, 2)
        return {
            "step": _wrapped_number(step),
            "middle": number_text(middle)[0],
            "step_weight": number_text(sp.N(step / sp.sqrt(2 * sp.pi), 40))[0],
            "grid": rule.n**2,
        }
    if rule.kind == "gh":
        nodes, weights = gauss_hermite(rule.n)
        return {"node_lines": _number_lines(nodes), "weight_lines": _number_lines(weights), "grid": rule.n**2}
    nodes, weights = gauss_legendre(rule.n)
    edges = 2 * int(-(-rule.radius // 1)) + 1
    kinks = [number_text(sp.sympify(node.value))[0] for node in function.kinks]
    outer = (edges + 48 * len(kinks)) * rule.n
    return {
        "node_lines": _number_lines(nodes),
        "weight_lines": _number_lines(weights),
        "kinks": ", ".join(kinks) + ",",
        "radius": repr(float(rule.radius)),
        "panel_step": _wrapped_number(2 * sp.Rational(str(rule.radius)) / (edges - 1)),
        "panel_edges": edges,
        "panel_middle": number_text(sp.Rational(edges - 1, 2))[0],
        "density": number_text(1 / sp.sqrt(2 * sp.pi))[0],
        "grid": outer * (edges + len(kinks)) * rule.n,
    }


def _wrapped_number(value: sp.Expr) -> str:
    text, strength = number_text(value)
    return text if strength >= 4 else f"({text})"


def _number_lines(values: Iterable[float]) -> list[str]:
    return textwrap.wrap(", ".join(repr(value) for value in values) + ",", WIDTH - 4, break_on_hyphens=False)
