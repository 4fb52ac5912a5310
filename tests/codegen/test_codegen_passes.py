"""Passes on large graphs, stages, tapes, and the cost report: values against an oracle without passes, cost by counting."""

from __future__ import annotations

import ast
import itertools
import random
import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy as sp
from codegen_kernel_set import scalar_kernel

from codegen import ModuleSpec, generate
from codegen.cost import report
from codegen.graph import Graph, Node, count_uses, postorder
from codegen.lower.expression import convert
from codegen.lower.scalar import lower_scalar
from codegen.passes import PASSES, assemble, fold, horner, optimise, schedule, split, stages, straight_line_work
from codegen.passes.cse import LONGEST
from codegen.passes.split import WIDEST
from codegen.passes.tape import Instruction, Tape
from codegen.printers import mpmath_printer
from codegen.printers.mpmath import namespace

x, y, z = sp.symbols("x y z", real=True)


def chain(length: int, graph: Graph) -> Node:
    """A deep graph that SymPy could not hold: v <- tanh(v) * v / 3 + x."""
    value = start = graph.var("x")
    for _ in range(length // 3):
        value = graph.add(graph.mul(graph.const(sp.Rational(1, 3)), graph.call("tanh", value), value), start)
    return value


def evaluated(roots: tuple[Node, ...], digits: int = 40, **values: str) -> list[mpmath.mpf]:
    """Direct evaluation of a graph, one node after the other."""
    known: dict[int, object] = {}
    functions = namespace()
    with mpmath.workdps(digits):
        for node in postorder(roots):
            below = [known[part.index] for part in node.args]
            match node.op:
                case "const":
                    found = mpmath.mpf(sp.N(node.value, digits)._to_mpmath(mpmath.mp.prec))
                case "var":
                    found = mpmath.mpf(values[str(node.value)])
                case "add":
                    found = mpmath.fsum(below)
                case "mul":
                    found = mpmath.fprod(below)
                case "pow":
                    found = below[0] ** int(node.value)
                case "call":
                    found = functions[f"f_{node.value}"](*below)
                case _:
                    raise AssertionError(node.op)
            known[node.index] = found
        return [known[root.index] for root in roots]  # type: ignore[misc]


def run_tape(tape: Tape, **values: float) -> list[float]:
    """An interpreter that shares nothing with the emitted one."""
    import math

    registers = [values[name] for name in tape.inputs] + [math.nan] * (tape.size - len(tape.inputs))
    rules = {
        "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "fma": lambda a, b, c: a * b + c,
        "axpy": lambda a, b, k: k * a + b, "mulk": lambda a, b, k: a * b + k, "scale": lambda a, k: k * a,
        "shift": lambda a, k: a + k, "reciprocal": lambda a: 1 / a, "constant": lambda k: k,
    }  # fmt: skip
    numbered = {"axpy", "mulk", "scale", "shift", "constant"}
    arity = {"add": 2, "mul": 2, "div": 2, "fma": 3, "axpy": 2, "mulk": 2, "constant": 0}

    def evaluate(tree: ast.expr, given: Iterator[float], numbers: Iterator[float]) -> float:
        """A name such as `fma(_,_,shift(scale))`, which is a Python expression, from left to right."""
        head = tree.func.id if isinstance(tree, ast.Call) else tree.id
        if head == "_":
            return next(given)
        own = [next(numbers)] if head in numbered else []
        operands = tree.args if isinstance(tree, ast.Call) else [ast.Name("_")] * arity.get(head, 1)
        return (rules[head] if head in rules else getattr(math, head))(*(evaluate(part, given, numbers) for part in operands), *own)

    for line in tape.instructions:
        given, numbers = [registers[source] for source in line.sources], map(float, line.numbers)
        registers[line.target] = evaluate(ast.parse(line.op, mode="eval").body, iter(given), numbers)
    return [registers[place] for place in tape.results]


def polynomial(degree: int, variables: str = "x y z") -> sp.Expr:
    symbols, numbers = sp.symbols(variables, real=True), random.Random(degree)
    exponents = (e for e in itertools.product(range(degree + 1), repeat=len(symbols)) if sum(e) <= degree)
    return sp.Add(
        *(sp.Rational(numbers.randrange(1, 99), numbers.randrange(1, 99)) * sp.Mul(*map(sp.Pow, symbols, e)) for e in exponents)
    )


# -- size -------------------------------------------------------------------------------------------------------------


def test_deep_graphs_pass_without_recursion_and_keep_their_value() -> None:
    graph = Graph()
    root = chain(1_800, graph)
    (result,) = optimise((root,), graph)
    (found,), (wanted,) = (evaluated((node,), x="0.7") for node in (result, root))
    assert abs(found - wanted) < mpmath.mpf(10) ** -35 * abs(wanted)


def test_passes_grow_no_worse_than_n_log_n() -> None:
    """Time per node must not grow by more than a factor 4 from 500 to 8,000 nodes (n**2 would be 16)."""
    per_node = []
    for length in (500, 8_000):
        graph = Graph()
        root = chain(length, graph)
        start = time.process_time()
        plan = schedule(optimise((root,), graph), ["x"])
        per_node.append((time.process_time() - start) / length)
        assert len(plan.assignments) > length / 10
    assert per_node[1] < 4 * per_node[0]


def test_shared_partial_sums_stay_shared() -> None:
    """n partial sums of n terms are n additions, not n**2 / 2."""
    graph = Graph()
    totals = [graph.var("v0")]
    for number in range(1, 300):
        totals.append(graph.add(totals[-1], graph.call("exp", graph.var(f"v{number}"))))
    roots = optimise(tuple(totals), graph)
    assert sum(len(node.args) - 1 for node in postorder(roots) if node.op == "add") == 299


@pytest.mark.parametrize("wrap", ["product", "sum", "power", "maximum"])
def test_a_node_that_collapses_to_its_argument_counts_once(wrap: str) -> None:
    """x + wrapped(y + z) is one sum of three terms if nothing else uses y + z, and two sums if something does."""
    for shared in (False, True):
        graph = Graph()
        inner = graph.add(graph.var("y"), graph.var("z"))
        wrapped = {
            "product": graph.mul(graph.const(1), inner),
            "sum": graph.add(inner, graph.const(0)),
            "power": graph.power(graph.power(inner, -1), -1),
            "maximum": graph.call("maximum", inner, inner),
        }[wrap]
        roots = (graph.add(graph.var("x"), wrapped), *((graph.call("exp", inner),) if shared else ()))
        folded = fold(roots, graph)
        assert len(folded[0].args) == (2 if shared else 3)
        (found, *_), (wanted, *_) = (evaluated(nodes, x="0.7", y="0.2", z="1.1") for nodes in (folded, roots))
        assert abs(found - wanted) < mpmath.mpf(10) ** -35


def test_conversion_visits_each_object_once() -> None:
    expr = x
    for _ in range(60):  # as a tree this has 2**60 leaves
        expr = sp.Add(sp.tanh(expr, evaluate=False), sp.Mul(2, expr, evaluate=False), evaluate=False)
    graph = Graph()
    convert(expr, {"x": "x"}, "test", graph)
    assert len(graph._table) < 300


def test_horner_of_a_dense_polynomial() -> None:
    """About one multiplication and one addition per term, against 5 and 1 of the expanded form; the value is kept."""
    graph, expr = Graph(), polynomial(8)
    root = convert(expr, {name: name for name in "xyz"}, "test", graph)
    (nested,) = optimise((root,), graph)
    count = sum(len(node.args) - 1 for node in postorder((nested,)) if node.op in ("add", "mul"))
    terms = len(expr.args)
    assert count < 2.2 * terms
    (found,), (wanted,) = (evaluated((node,), x="0.3", y="-0.7", z="1.1") for node in (nested, root))
    assert abs(found - wanted) < mpmath.mpf(10) ** -35


def test_horner_of_many_disjoint_groups_is_not_quadratic() -> None:
    graph = Graph()
    terms = [graph.mul(graph.var(f"a{k // 2}"), graph.var(f"b{k}")) for k in range(20_000)]
    start = time.process_time()
    (nested,) = horner((graph.add(*terms),), graph)
    assert time.process_time() - start < 6
    assert len(nested.args) == 10_000 and all(len(part.args[1].args) == 2 for part in nested.args)


def test_printed_expressions_are_short() -> None:
    graph = Graph()
    wide = graph.add(*(graph.call("exp", graph.var(f"v{k}")) for k in range(5_000)))
    (root,) = split((wide,), graph)
    assert all(len(node.args) <= WIDEST for node in postorder((root,)))
    deep = chain(900, graph)
    plan = schedule(optimise((root, deep), graph), [])
    printer = mpmath_printer()
    lines = printer.lines(plan)
    assert max(line.count("f_") for line in lines) <= LONGEST
    assert max(map(len, lines)) < 60 * LONGEST


def test_reciprocal_powers_divide_once() -> None:
    graph = Graph()
    base = graph.add(graph.var("x"), graph.const(2))
    roots = optimise(tuple(graph.power(base, -k) for k in (1, 2, 3, 5)), graph)
    assert sum(node.op == "pow" and node.value < 0 for node in postorder(roots)) == 1
    for found, wanted in zip(evaluated(roots, x="0.5"), [mpmath.mpf("2.5") ** -k for k in (1, 2, 3, 5)]):
        assert abs(found - wanted) < 1e-14


# -- stable forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "name"),
    [(sp.log(1 + sp.exp(x)), "softplus"), (3 / (1 + sp.exp(x)) ** 2, "sigmoid"), (2 / (5 + 5 * sp.exp(-x)), "sigmoid"),
     (1 + sp.erf(x) + y, "erfc"), (sp.exp(x) - 1, "expm1"), (1 - sp.tanh(x) ** 2, "sech2")],
)  # fmt: skip
def test_stable_forms_are_found_and_equal(expr: sp.Expr, name: str) -> None:
    graph = Graph()
    root = convert(expr, {"x": "x", "y": "y"}, "test", graph)
    (made,) = optimise((root,), graph)
    assert name in {node.value for node in postorder((made,)) if node.op == "call"}
    (found,), (wanted,) = (evaluated((node,), x="0.6", y="-0.2") for node in (made, root))
    assert abs(found - wanted) < mpmath.mpf(10) ** -35


# -- stages -----------------------------------------------------------------------------------------------------------

SHARED = {"a": sp.exp(x * y) * x, "b": sp.exp(x * y) * y + sp.sin(z), "c": sp.exp(x * y) / (2 + sp.exp(x * y)) * sp.sin(z),
          "d": sp.tanh(sp.sin(z) + x), "e": sp.tanh(sp.sin(z) + x) * y}  # fmt: skip


def modules(outputs: dict[str, sp.Expr], **options: object):  # type: ignore[no-untyped-def]
    kernel = scalar_kernel("f", "x y z", **outputs)
    return generate(ModuleSpec("m", "A kernel.", (kernel,), reference_points=False, **options))  # type: ignore[arg-type]


def fused_calls(module, name: str, count: int = 1000) -> int:  # type: ignore[no-untyped-def]
    """How often a function is evaluated in the compiled program."""
    arguments = [jnp.linspace(0.1, 1, count)] * 3
    text = jax.jit(module.load().f).lower(*arguments).compile().as_text()
    return text.count(f" {name}(")


def test_stages_hold_what_several_outputs_need() -> None:
    function = lower_scalar(scalar_kernel("f", "x y z", **SHARED))
    staged = [node.value for stage in stages(function.roots) for node in stage.nodes]
    assert staged == ["exp", "sin", "tanh"]
    assert [len(call.targets) for call in function.stages] == [2, 1]
    assert stages(function.roots[:1]) == ()  # one output evaluates everything once anyway


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="other backends make loops of several outputs")
def test_compiled_code_evaluates_staged_functions_once() -> None:
    plain, staged = modules(SHARED, staging=False), modules(SHARED)
    assert fused_calls(plain, "sine") > 1 and fused_calls(staged, "sine") == 1


@pytest.mark.parametrize("options", [{}, {"staging": False}, {"budget": 0}], ids=["stages", "plain", "tape"])
@pytest.mark.parametrize("shape", [(), (3, 200), (1500,), (0,)], ids=str)
def test_every_schedule_gives_the_same_values(options: dict, shape: tuple[int, ...]) -> None:
    f = modules(SHARED, **options).load().f
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(-1, 1, shape), rng.uniform(-1, 1, ()), rng.uniform(-1, 1, shape)]
    wanted = sp.lambdify((x, y, z), list(SHARED.values()), "numpy")(*arrays)
    for found, expected in zip(f(*arrays), wanted):
        np.testing.assert_allclose(found, expected, rtol=2e-15, atol=2e-15)
    assert f(*(np.float32(array) for array in arrays)).a.dtype == jnp.float32


@pytest.mark.parametrize("options", [{}, {"budget": 0}], ids=["stages", "tape"])
def test_schedules_are_differentiable_and_map(options: dict) -> None:
    f, rng = modules(SHARED, **options).load().f, np.random.default_rng(2)
    arrays = [jnp.asarray(rng.uniform(-1, 1, 300)) for _ in range(3)]

    def total(u):  # type: ignore[no-untyped-def]
        return sum(jnp.sum(value) for value in f(u, *arrays[1:]))

    exact = sp.lambdify((x, y, z), sp.diff(sum(SHARED.values()), x), "numpy")(*map(np.asarray, arrays))
    np.testing.assert_allclose(jax.grad(total)(arrays[0]), exact, rtol=1e-13)
    np.testing.assert_allclose(jax.jvp(total, (arrays[0],), (jnp.ones(300),))[1], exact.sum(), rtol=1e-13)
    rows = [array.reshape(3, 100) for array in arrays]
    np.testing.assert_allclose(jax.vmap(f)(*rows).d, f(*rows).d, rtol=1e-15)


# -- tapes ------------------------------------------------------------------------------------------------------------


def test_tape_against_its_own_interpreter_and_the_graph() -> None:
    graph = Graph()
    expr = polynomial(5) / (1 + x**2) + sp.exp(x * y) * sp.sin(z) / (3 + y) - 2 * x / 7 + 1 / (x * y * 5)
    root = convert(expr, {name: name for name in "xyz"}, "test", graph)
    roots = optimise((root, convert(x * y - 3, {"x": "x", "y": "y"}, "test", graph)), graph)
    tape = assemble(roots, ["x", "y", "z"])
    at = {"x": 0.375, "y": -0.625, "z": 1.25}
    wanted = evaluated((root,), **{name: str(value) for name, value in at.items()})[0]
    found = run_tape(tape, **at)
    assert found == pytest.approx([float(wanted), 0.375 * -0.625 - 3], rel=1e-14)
    assert any("(" in line.op for line in tape.instructions)  # pairs of instructions became one
    broken = [k for k, line in enumerate(tape.instructions) if line.op.startswith("fma")][3]
    lines = list(tape.instructions)
    lines[broken] = Instruction(lines[broken].op, lines[broken].target, (*lines[broken].sources[:-1], 0), lines[broken].numbers)
    assert run_tape(Tape(tuple(lines), tape.inputs, tape.results, tape.size), **at)[0] != pytest.approx(float(wanted), rel=1e-9)


def test_tape_fuses_and_frees() -> None:
    graph = Graph()
    (root,) = optimise((convert(polynomial(10), {name: name for name in "xyz"}, "test", graph),), graph)
    tape = assemble((root,), ["x", "y", "z"])
    counted = sum(len(node.args) - 1 for node in postorder((root,)) if node.op in ("add", "mul"))
    assert len(tape.instructions) < 0.75 * counted  # Horner steps are one instruction each
    assert tape.size < 30


def test_large_kernels_become_tapes_and_compile_at_once() -> None:
    big = {f"out{k}": polynomial(6).subs(x, x + k) + sp.tanh(y * k) for k in range(24)}
    function = lower_scalar(scalar_kernel("f", "x y z", **big))
    assert hasattr(function, "tape") and straight_line_work(function.roots, 6000) > 6000
    module = modules(big)
    arrays = [jnp.linspace(-1, 1, 50), jnp.linspace(0, 1, 50), jnp.linspace(-1, 0, 50)]
    found = module.load().f(*arrays)
    check = sp.lambdify((x, y, z), [big["out3"], big["out23"]], "numpy")(*map(np.asarray, arrays))
    np.testing.assert_allclose(found.out3, check[0], rtol=1e-10)
    np.testing.assert_allclose(found.out23, check[1], rtol=1e-9)


def test_many_outputs_of_a_tape_come_as_one_compiled_array() -> None:
    """XLA spends time on every output of a program, so the compiled function has one; values and gradients are the same."""
    outputs = {f"out{k}": sp.sin(k * x) * y**3 + z / (k + 2) for k in range(40)}
    module = modules(outputs, budget=0).load()
    arrays = [jnp.linspace(-1, 1, 7), jnp.linspace(0.5, 1, 7), jnp.linspace(-1, 0, 7)]
    assert jax.make_jaxpr(module._f_table)(*arrays).out_avals[0].shape == (40, 7)
    found = module.f(*arrays)
    for name in ("out0", "out17", "out39"):
        np.testing.assert_allclose(
            getattr(found, name), sp.lambdify((x, y, z), outputs[name], "numpy")(*map(np.asarray, arrays)), rtol=1e-12
        )
    slope = jax.jit(jax.vmap(jax.grad(lambda *values: module.f(*values).out17)))(*arrays)
    np.testing.assert_allclose(slope, 17 * np.cos(17 * arrays[0]) * arrays[1] ** 3, rtol=1e-11)


def test_text_of_large_kernels_does_not_depend_on_hashes() -> None:
    assert modules(SHARED, budget=0).source == modules(dict(SHARED), budget=0).source


# -- report -----------------------------------------------------------------------------------------------------------


def test_report_shows_what_passes_do() -> None:
    found = report(modules({"p": polynomial(8)}))["f"]
    first, *_, last = found.passes
    assert [each.name for each in found.passes[1:]] == [run.__name__ for run in PASSES]
    assert last.arithmetic < 0.6 * first.arithmetic and found.compile_class == "below a second"
    assert "tape of" in str(report(modules(SHARED, budget=0))) and "2 stages" in str(report(modules(SHARED)))
    assert "<table>" in report(modules(SHARED))._repr_html_()
    with pytest.raises(KeyError, match="known: f"):
        report(modules(SHARED))["g"]


def test_counts_of_operations_are_right() -> None:
    graph = Graph()
    root = fold((convert(x**7 + 3 * x * y + sp.exp(x), {"x": "x", "y": "y"}, "test", graph),), graph)
    module = modules({"p": x**7 + 3 * x * y + sp.exp(x)})
    assert report(module)["f"].passes[0].arithmetic == 4 + 2 + 2  # x**7 by four products, 3 x y, two additions
    assert report(module)["f"].cost.transcendental == 1
    assert count_uses(postorder(root), root)[graph.var("x").index] == 3
