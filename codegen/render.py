"""Lowered functions to text. This is the only file that knows Jinja2."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from symtensor.kernels import Argument

from .analyse import Signature
from .ir import (
    CompositeFunction,
    Function,
    LoopFunction,
    MomentFunction,
    ScalarFunction,
    TapeFunction,
    TemplateFunction,
    TensorFunction,
)
from .names import class_name, docstring_text
from .printers.bodies import composite_body, moment_values, scalar_body, tensor_body
from .printers.jax import IMPORTS, helpers
from .printers.layout import WIDTH, assignment, call_lines, tuple_text
from .printers.tape import operation_lines, table_body, table_name, tape_body, tape_lines
from .reference_text import ReferencePoint, reference_lines
from .spec import ModuleSpec

__all__ = ["render"]


#: multiplications per entry moved from which packing symmetric pairs pays
_PACKED_WORK = 30
#: points below which stages are not kept apart: the conditional would cost more
_SMALL_BATCH = 256


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        keep_trailing_newline=False,
    )


def _template(name: str, values: Mapping[str, Any]) -> str:
    return _environment().get_template(name).render(**values)


def render(
    spec: ModuleSpec,
    functions: tuple[Function, ...],
    signatures: Mapping[str, Signature],
    formulas: Mapping[str, str],
    points: tuple[ReferencePoint, ...],
    tolerance: Mapping[str, float],
) -> str:
    """The source of the module. The same input gives the same bytes: no dates, versions, paths or hashes."""
    used: set[str] = set()
    blocks = [_function(function, signatures[function.name], formulas.get(function.name, ""), used) for function in functions]
    tapes = [function.tape for function in functions if isinstance(function, TapeFunction)]
    operations = operation_lines(tapes, used) if tapes else []
    reference = ""
    if points:
        reference = _template(
            "reference.jinja",
            {"points": reference_lines(points), "tolerance": dict(tolerance), "functions": sorted({p.kernel for p in points})},
        )
    shared = _template("shared.jinja", {"uses": {**_uses(functions), "tape": operations}, "helpers": helpers(used)})
    source = _template(
        "module.py.jinja",
        {
            "head": _head(spec, functions, signatures),
            "imports": _imports(functions, signatures, used, bool(points)),
            "shared": shared.strip(),
            "blocks": [block.strip() for block in blocks],
            "reference": reference.strip(),
        },
    )
    return _tidy(source)


def _tidy(source: str) -> str:
    """No trailing blanks, at most two empty lines, one newline at the end."""
    lines = [line.rstrip() for line in source.split("\n")]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip() + "\n"


# -- what a module imports and defines ----------------------------------------------------------------------------------


def _uses(functions: Iterable[Function]) -> dict[str, Any]:
    functions = tuple(functions)
    quadrature = any(isinstance(f, MomentFunction) and f.method in ("inside", "hermite") for f in functions)
    return {
        "floats": any(isinstance(f, MomentFunction | LoopFunction | TapeFunction) or _needs(f, "floats") for f in functions),
        "once": _SMALL_BATCH if any(map(_staged, functions)) else 0,
        "broadcast": any(isinstance(f, TensorFunction) and f.spreads for f in functions),
        "packed": _PACKED_WORK if any(map(_packed, functions)) else 0,
        "safe": quadrature or any(_needs(f, "safe") for f in functions),
        "stacked": any(_needs(f, "stacked") for f in functions),
        "blocks": any(_needs(f, "blocks") for f in functions),
    }


def _imports(
    functions: tuple[Function, ...], signatures: Mapping[str, Signature], used: set[str], checked: bool
) -> list[str]:
    quadrature = [f for f in functions if isinstance(f, MomentFunction) and f.method in ("inside", "hermite")]
    loops = [f for f in functions if isinstance(f, LoopFunction)]
    contractions = any(isinstance(f, TensorFunction) and f.contractions for f in functions)
    templated = {need for f in functions if isinstance(f, TemplateFunction) for need in f.needs}
    tapes, staged = any(isinstance(f, TapeFunction) for f in functions), any(map(_staged, functions))
    plain = ScalarFunction | TensorFunction | TemplateFunction
    records = "NamedTuple" in templated or any(
        _several(f) or (not isinstance(f, plain) and signatures[f.name].record is not None) for f in functions
    )
    partial = loops or quadrature or tapes or templated & {"partial", "blocks"} or any(map(_packed, functions))
    wants_any = quadrature or checked or staged or any(f.kind == "ode" for f in loops) or templated & {"stacked", "Callable"}
    names = [name for name, wanted in (("Any", wants_any), ("NamedTuple", records or checked)) if wanted]
    wants_lax = quadrature or contractions or loops or tapes or staged or templated & {"lax", "blocks"}
    jax_names = ["Array", "lax"] if wants_lax else ["Array"]
    special = sorted(IMPORTS[name] for name in used if name in IMPORTS)
    standard = [
        *(["from collections.abc import Callable"] if quadrature or tapes or staged or templated & {"Callable", "blocks"} else []),
        *(["from functools import partial"] if partial else []),
        *(["from math import comb"] if any(f.method == "hermite" for f in quadrature) else []),
        *([f"from typing import {', '.join(names)}"] if names else []),
    ]
    third_party = [
        *(["import diffrax"] if any(f.kind == "ode" for f in loops) else []),
        "import jax",
        "import jax.numpy as jnp",
        f"from jax import {', '.join(jax_names)}",
        *([f"from jax.scipy.special import {', '.join(special)}"] if special else []),
    ]
    return [*standard, *([""] if standard else []), *third_party]


def _needs(function: Function, what: str) -> bool:
    return isinstance(function, TemplateFunction) and what in function.needs


def _several(function: Function) -> bool:
    return isinstance(function, ScalarFunction | TapeFunction) and len(function.outputs) > 1


def _packed(function: Function) -> bool:
    return isinstance(function, TensorFunction) and any(step.pairs for step in function.contractions)


def _staged(function: Function) -> bool:
    return isinstance(function, ScalarFunction) and bool(function.stages)


# -- docstrings --------------------------------------------------------------------------------------------------------


def _wrapped(text: str, indent: str = "", width: int = WIDTH) -> list[str]:
    """Lines of at most `width` characters; a formula is broken at spaces only."""
    lines: list[str] = []
    for line in docstring_text(text).split("\n"):
        room = width - len(indent)
        lines += textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False, drop_whitespace=True) or [""]
    return [indent + line if line else "" for line in lines]


def _shape(argument: Argument) -> str:
    if not argument.shape:
        return "scalar"
    return f"({', '.join(map(str, argument.shape))}{',' if len(argument.shape) == 1 else ''})"


def _head(spec: ModuleSpec, functions: Iterable[Function], signatures: Mapping[str, Signature]) -> str:
    lines = _wrapped(spec.title.strip().splitlines()[0] if spec.title.strip() else spec.name)
    if spec.statement:
        lines += ["", *_wrapped(spec.statement)]
    if spec.equations:
        lines += ["", "Equations", ""]
        for equation in spec.equations:
            lines += _wrapped(equation, "    ")
    lines += ["", "Functions (jitted; differentiable; arrays may be float32 or float64, results follow)", ""]
    for function in functions:
        signature = signatures[function.name]
        arguments = ", ".join(argument.name for argument in signature.arguments)
        result = signature.record or _shape(signature.outputs[0])
        lines += _wrapped(f"{function.name}({arguments}) -> {result}", "    ")
    lines += ["", "P is the number of inputs. Run this file to compare every function with the reference values it holds."]
    if spec.citations:
        lines += ["", "References", ""]
        for citation in spec.citations:
            lines += _wrapped(citation, "    ")
    return "\n".join(lines)


def _doc(title: str, formula: str, arguments: Iterable[Argument], outputs: Iterable[Argument], record: str | None) -> str:
    """Docstring of one function, indented for a function body; the first line follows the opening quotes."""
    lines = _wrapped(title, "    ")
    if formula:
        lines += ["", *_wrapped(formula, "        ")]
    lines += ["", *_table(arguments, "    ")]
    outputs = tuple(outputs)
    if record is None:
        lines += [f"    Returns {_shape(outputs[0])}."]
    else:
        lines += [f"    Returns {record}:", *_table(outputs, "        ")]
    return "\n".join(lines).strip()


def _table(arguments: Iterable[Argument], indent: str) -> list[str]:
    rows = [(argument.name, _shape(argument), argument.meaning) for argument in arguments]
    if not rows:
        return []
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = []
    for name, shape, meaning in rows:
        lines += _wrapped(f"{name:<{first}}  {shape:<{second}}  {meaning}".rstrip(), indent)[:1]
    return lines


# -- one function ------------------------------------------------------------------------------------------------------


def _function(function: Function, signature: Signature, formula: str, used: set[str]) -> str:
    title = function.title or _TITLES[type(function)]
    extra = function.documented if isinstance(function, TemplateFunction) else ()
    arguments = (*signature.arguments, *_LOOP_ARGUMENTS.get(getattr(function, "kind", ""), extra))
    doc = _doc(title, formula, arguments, signature.outputs, signature.record)
    common = {
        "name": function.name,
        "record": signature.record,
        "record_doc": " ".join(_wrapped(f"What {function.name} returns.")),
        "fields": [output.name for output in signature.outputs],
        "definition": _definition(function, signature),
        "doc": doc,
        "jitted": True,
    }
    match function:
        case ScalarFunction():
            body, results = scalar_body(function, used)
        case TapeFunction():
            body, results = tape_body(function, signature.record), None
            common["jitted"] = table_body(function) is None
        case TensorFunction():
            body, results = tensor_body(function, used)
        case CompositeFunction():
            body, results = composite_body(function, signature)
        case MomentFunction():
            return _template("moments.jinja", {**common, **moment_values(function, used)})
        case LoopFunction():
            return _template("loop.jinja", {**common, **_loop_values(function)})
        case TemplateFunction():
            return _template(function.template, {**common, **function.values})
    if results is not None:
        body = [*body, *_return(results, signature.record)]
    text = _template("function.jinja", {**common, "body": body})
    return _tape_text(function) + text if isinstance(function, TapeFunction) else text


def _tape_text(function: TapeFunction) -> str:
    """The instructions, and the compiled function of all outputs if there are many."""
    program = "\n".join(tape_lines(function.tape))
    text = f'#: operation, target register, source registers, #number\n_{function.name}_tape = """\\\n{program}"""\n\n\n'
    body = table_body(function)
    if body is None:
        return text
    values = {
        "definition": call_lines(f"def {table_name(function)}(", [f"{argument.name}: Array" for argument in function.arguments],
                                 ") -> Array:"),
        "doc": f"The outputs of {function.name} along the first axis.",
        "record": None, "body": body, "jitted": True,
    }  # fmt: skip
    return text + _template("function.jinja", values) + "\n\n\n"


def _return(results: list[tuple[str, str]], record: str | None) -> list[str]:
    if record is None:
        return assignment("return", results[0][1])
    parts = [f"{name}={value}" for name, value in results]
    return call_lines(f"return {record}(", parts, ")", WIDTH)


def _definition(function: Function, signature: Signature) -> list[str]:
    """The `def` line, one parameter per line if it is long."""
    parameters = [f"{argument.name}: Array" for argument in signature.arguments]
    if isinstance(function, MomentFunction) and function.method in ("inside", "hermite"):
        parameters += ["z: Array | None = None", "w: Array | None = None"]
    if isinstance(function, LoopFunction):
        parameters += _LOOP_PARAMETERS[function.kind]
    if isinstance(function, TemplateFunction):
        parameters += function.parameters
    return call_lines(f"def {function.name}(", parameters, f") -> {signature.record or 'Array'}:")


_LOOP_PARAMETERS = {
    "scan": ["*", "depth: int"],
    "ode": ["ts: Array", "rtol: float | None = None", "atol: float | None = None", "*", "max_steps: int = 256"],
}


_LOOP_ARGUMENTS = {
    "scan": (Argument("depth", (), "number of layers, a static integer"),),
    "ode": (
        Argument("ts", ("T",), "increasing times at which the state is returned; the first is the initial time"),
        Argument("rtol, atol", (), "tolerances per step; by default 1e-12 in float64 (1e-10 between steps), 1e-6 in float32"),
        Argument("max_steps", (), "static; `success` is False if they do not suffice; about 16 states are kept per step"),
    ),
}
_TITLES = {
    ScalarFunction: "Elementwise.",
    TapeFunction: "Elementwise, by a tape of instructions.",
    TensorFunction: "Sum of products of arrays.",
    CompositeFunction: "Several functions in sequence.",
    MomentFunction: "Weak Gaussian moments of the activation.",
    LoopFunction: "Iteration over depth.",
    TemplateFunction: "Assembled from other functions.",
}


def _loop_values(function: LoopFunction) -> dict[str, Any]:
    states = [state for state, _ in function.carry]
    arguments = [argument.name for argument in function.arguments]
    return {
        "kind": function.kind,
        "step": function.step,
        "arguments": ", ".join(arguments),
        "call": ", ".join("_t" if name == function.time else name for name in function.passed or arguments),
        "cast": f"{', '.join(arguments)}{',' if len(arguments) == 1 else ''}",
        "states": ", ".join(states),
        "unpacked": f"{', '.join(states)}{',' if len(states) == 1 else ''}",
        "initial": tuple_text(states),
        "rates": tuple_text([f"_now.{returned}" for _, returned in function.carry]),
        "recorded": tuple_text([*states, *(f"_now.{name}" for name in function.records)]),
        "record": class_name(function.name),
    }
