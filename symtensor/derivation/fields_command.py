"""The command `symtensor fields MODEL [options]`: a theory to diagrams, to a formula, to a generated module.

Errors are raised, addressed to the user; `symtensor.cli` turns them into one message and exit status 2.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sympy as sp

from symtensor.arguments import Formatter, Parser, UsageError
from symtensor.derivation.derivation_document import add_steps
from symtensor.derivation.diagram_steps import diagram_step, rules_step, second_route
from symtensor.derivation.document import Document
from symtensor.derivation.model import Equation, Step, run_checks
from symtensor.derivation.momentum_command import answer
from symtensor.derivation.output import prepare_output
from symtensor.derivation.results import write_text
from symtensor.fields import THEORIES, DiagramSum, FieldTheory, theory
from symtensor.fields.errors import TheoryError
from symtensor.fields.momentum import MOMENTUM_THEORIES
from symtensor.fields.theories import ALIASES
from symtensor.fields.theory_file import load_theory_file
from symtensor.parsing import parse_expression

__all__ = ["main"]

PROGRAM = "symtensor fields"
USAGE = f"{PROGRAM} MODEL [--cumulant x,x | --vertex xt,x] [--loops L] [options]"
DESCRIPTION = """Expand a cumulant or a vertex function of a field theory in loops: the diagrams with their symmetry factors, signs
and integrals, the sum in closed form, and a JAX module that evaluates it.

MODEL is a named theory (symtensor fields --list), a theory file (.toml), or text: an action such as "x^2/2 + g*x^4/24"
(weight exp(-S), zero dimensions), or a stochastic equation such as "dx = -(x + g*x^3) dt + sqrt(2*T) dW" (Ito).
The response field of x is called xt."""
EPILOG = """examples
  symtensor fields cubic-langevin --cumulant x,x --loops 2
      the two-point function of a quartic potential, in closed form, as a function of time
  symtensor fields cubic-langevin --cumulant x,x --loops 2 --at t=1,T=0.5,g=0.1
      and its value, order by order
  symtensor fields quadratic-langevin --cumulant x --loops 2 --out out/tadpoles
      the shift of the mean: report, pictures, module
  symtensor fields "dx = -x dt + sqrt(2*T)*(1 + g*x) dW" --cumulant x,x,x --times equal --loops 1
  symtensor fields phi4 --vertex x,x --loops 3 --verify
  symtensor fields kpz --vertex xt,x --loops 1 --at k=1,omega=0,nu=1,D=1,lam=1,d=1
      lines with momenta: the self-energy as a loop integral, and its value in one dimension

a theory file
  equations = "dx = -(x + g*x^3) dt + sqrt(2*T) dW"      or:  action = "x^2/2 + g*x^4/24" with fields = ["x"]
  point = { x = 0 }   values = { g = 0.1 }   legs = ["x", "x"]   loops = 2          (all optional)

what --out leaves in its folder
  index.html    rules, each diagram with its formula, the sum, the check by a second route
  terms.json    every term: diagram, symmetry factor, sign, formula, value
  NAME.py       the generated module; it needs only jax, and checks itself when it is run
  formula.tex   the sum in LaTeX

See also: symtensor diagrams --help (the diagrams alone), symtensor --help"""


def main(arguments: Sequence[str]) -> int:
    """Run `symtensor fields` with `arguments`; returns the exit status, raises TheoryError and UsageError."""
    if any(argument in ("-h", "--help") for argument in arguments):
        print(_parser().format_help(), end="")
        return 0
    options = _parser().parse_args(list(arguments))
    if options.list:
        print(listing())
        return 0
    if options.model is None:
        names = ", ".join([*THEORIES, *MOMENTUM_THEORIES])
        raise UsageError(f"which theory? There are: {names}; or a theory file, an action, an equation ({PROGRAM} --help)")
    if options.model.lower() in MOMENTUM_THEORIES:
        return answer(options, _parameters(options))
    total = _asked(options)
    numbers = _numbers(options.at, total) if options.at else None
    if options.out is not None:
        _check_out(options)
    if options.json:
        print(json.dumps(_record(total, numbers), indent=1))
    else:
        print(_text(total, numbers, options.latex))
    if options.verify:
        print(f"verified: {total.verify()}")
    if options.out is not None:
        _write(total, options)
    return 0


def listing() -> str:
    """The named theories, one a line."""
    named = {**THEORIES, **MOMENTUM_THEORIES}
    width = max(map(len, named))
    return "\n".join(f"  {name:<{width}}  {build().title}" for name, build in named.items())


def _asked(options: argparse.Namespace) -> DiagramSum:
    if options.cumulant is not None and options.vertex is not None:
        raise UsageError("--cumulant and --vertex are two questions; ask one of them")
    chosen, legs, loops = _theory(options)
    loops = options.loops if options.loops is not None else loops
    legs = options.cumulant or options.vertex or legs
    taken = []
    if not legs:
        first = chosen.fields[0].name
        legs = f"{first},{first}"
        taken.append(f"--cumulant {legs}")
    if loops is None:
        loops = 1
        taken.append("--loops 1")
    if taken:
        print(f"{PROGRAM}: not given, so taken: {' '.join(taken)}", file=sys.stderr)
    make = chosen.vertex_function if options.vertex is not None else chosen.cumulant
    return make(legs, loops, options.times)


def _theory(options: argparse.Namespace) -> tuple[FieldTheory, Any, int | None]:
    """The theory, and the legs and loops that a file asks for."""
    name: str = options.model
    if name.lower() in THEORIES or name.lower() in ALIASES:
        return theory(name), None, None
    if Path(name).suffix == ".toml" or Path(name).is_file():
        try:
            file = load_theory_file(name)
        except OSError as error:
            raise TheoryError(f"theory file {name}: cannot be read ({error.strerror or error})") from None
        return FieldTheory.from_file(file), ",".join(file.legs), file.loops
    if re.match(r"\s*d\s*\w+\s*=", name):
        return FieldTheory.langevin(name), None, None
    if not re.search(r"[-+*/^ ()]", name.strip()):
        return theory(name), None, None  # a misspelt name: the error lists those there are
    return FieldTheory.static(name, options.fields.split(",") if options.fields else ["x"]), None, None


def _numbers(text: str, total: DiagramSum) -> dict[str, sp.Expr]:
    values: dict[str, sp.Expr] = {}
    for part in text.split(","):
        name, equal, value = part.partition("=")
        if not equal or not name.strip():
            raise UsageError(f"--at {part!r}: write NAME=VALUE, as --at t=1,g=0.1")
        values[name.strip()] = parse_expression(value, [])
    times = [moment for moment in total.legs.moments if isinstance(moment, sp.Symbol)]
    needed = {s.name for s in (*total.theory.parameters, *times)}
    missing, stray = sorted(needed - set(values)), sorted(set(values) - needed)
    if missing or stray:
        what = f"gives no value for {', '.join(missing)}" if missing else f"names {', '.join(stray)}, which does not occur"
        raise UsageError(f"--at {what}; the values wanted are {', '.join(sorted(needed)) or 'none'}")
    return values


def _value(expression: sp.Expr, numbers: dict[str, sp.Expr]) -> sp.Expr:
    return sp.sympify(expression.subs({s: numbers[str(s)] for s in expression.free_symbols if str(s) in numbers}).evalf(15))


def _text(total: DiagramSum, numbers: dict[str, sp.Expr] | None, latex: bool) -> str:
    theory_ = total.theory
    lines = [f"{theory_.name}: {theory_.title}" if theory_.title else theory_.name]
    lines += [f"  {sentence}" for sentence in theory_.conventions]
    if theory_.conditions:
        lines.append(f"  the saddle is stable if {', '.join(sp.sstr(c) for c in theory_.conditions)}")
    lines += ["", str(total)]
    if latex:
        lines += ["", f"{total.latex_name()} = {total.latex()}", f" = {sp.latex(total.expr)}"]
    if numbers is not None:
        orders = [f"{loops}: {_value(part.expr, numbers)}" for loops, part in total.by_order().items()]
        lines += ["", f"at {', '.join(f'{k} = {v}' for k, v in numbers.items())}", f"  by loops  {'; '.join(orders)}"]
        lines.append(f"  sum       {_value(total.expr, numbers)}")
    return "\n".join(lines)


def _record(total: DiagramSum, numbers: dict[str, sp.Expr] | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "theory": total.theory.name, "legs": list(total.legs.names), "kind": total.kind, "loops": total.loops,
        "times": [sp.sstr(total.legs.moments[g]) for g in total.legs.groups] if total.legs.moments else [],
        "conventions": list(total.theory.conventions),
        "saddle": {s.name: sp.sstr(v) for s, v in zip(total.theory.fields, total.theory.saddle)},
        "terms": [
            {"loops": t.loops, "diagram": t.diagram.canonical, "symmetry_factor": t.symmetry_factor, "sign": t.sign,
             "formula": t.latex(), "value": sp.sstr(t.expr)}
            for t in total
        ],
        "orders": {str(loops): sp.sstr(part.expr) for loops, part in total.by_order().items()},
        "sum": sp.sstr(total.expr),
    }  # fmt: skip
    if numbers is not None:
        record["value"] = float(_value(total.expr, numbers))
    return record


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    keys = ("model", "cumulant", "vertex", "times", "loops", "fields")
    return {key: getattr(options, key) for key in keys}


def _check_out(options: argparse.Namespace) -> None:
    if not options.out.strip():
        raise UsageError("--out needs the name of a folder, got an empty text")
    prepare_output(Path(options.out), _parameters(options))


def _write(total: DiagramSum, options: argparse.Namespace) -> None:
    folder = Path(options.out)
    write_text(folder / "terms.json", json.dumps(_record(total, None), indent=1) + "\n")
    write_text(folder / "formula.tex", f"{total.latex_name()} = {total.latex()}\n = {sp.latex(total.expr)}\n")
    write_text(folder / "index.html", document(total).html())
    written = ["index.html", "terms.json", "formula.tex"]
    try:
        module = total.compile().module
    except TheoryError as error:
        print(f"{PROGRAM}: no module was written: {error}", file=sys.stderr)
    else:
        written.append(module.write(folder).name)
    print(f"written to {folder}: {', '.join(written)}")


def document(total: DiagramSum) -> Document:
    """The report: rules, the diagrams of each order, the sum, the check by the second route."""
    page = Document(total.title, total.theory.title)
    steps: list[Step] = [rules_step(total.theory)]
    for loops, part in total.by_order().items():
        if len(part):
            steps.append(diagram_step(part, _order(loops)))
    complete = total.kind == "connected" or not total.theory.stochastic
    checks = (second_route(total),) if complete else ()
    steps.append(Step("Sum", total.empty_reason, (_sum_equation(total),), checks))
    add_steps(page, steps, run_checks(tuple(steps)))
    return page


def _order(loops: int) -> str:
    return {0: "Tree level", 1: "One loop"}.get(loops, f"{loops} loops")


def _sum_equation(total: DiagramSum) -> Equation:
    return Equation(f"{total.latex_name()} = {sp.latex(total.expr)}")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM, usage=USAGE, description=DESCRIPTION, epilog=EPILOG, formatter_class=Formatter, allow_abbrev=False,
        add_help=False,
    )  # fmt: skip
    parser.add_argument("model", nargs="?", metavar="MODEL", help="named theory, theory file, action or stochastic equation")
    ask = parser.add_argument_group("what is asked").add_argument
    ask("--cumulant", metavar="LEGS", help="fields of the cumulant, the latest first: x,x or x,xt (default: two of the first)")
    ask("--vertex", metavar="LEGS", help="amputated fields of a one-particle irreducible function: xt,x is the self-energy")
    ask("--loops", type=int, metavar="L", help="up to so many loops (default: 1)")
    ask("--times", metavar="NAMES", help="times of the legs, latest first, as t,t,0; or equal (default: t,0; t1,t2,..,0)")
    ask("--fields", metavar="NAMES", help="the fields of an action given as text (default: x)")
    ask("--at", metavar="VALUES", help="numbers for times and parameters, t=1,g=0.1: print the value")
    ask("--verify", action="store_true", help="check every order by a route without diagrams")
    ask("--list", action="store_true", help="list the named theories")
    answer = parser.add_argument_group("answer").add_argument
    answer("--latex", action="store_true", help="print the formulas in LaTeX too")
    answer("--json", action="store_true", help="print a JSON document")
    answer("--out", metavar="DIR", help="write report, pictures, terms, LaTeX and the generated module")
    return parser
