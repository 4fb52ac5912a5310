"""Text and names from users cannot become code; clashes are errors at generation time."""

from __future__ import annotations

import ast

import pytest
import sympy as sp
from codegen_kernel_set import scalar_kernel

from codegen import GenerationError, ModuleSpec, NameClash, generate
from codegen.names import docstring_text
from symtensor.kernels import Argument, ScalarKernel

x = sp.Symbol("x", real=True)
KERNEL = scalar_kernel("f", "x", out=x**2)

TEXTS = [
    '"""\nimport os\nos.system("true")\n"""', "'''", '"', "\\", 'end\\"""', "{{ 7*7 }}", "{% for a in b %}", "{# comment #}",
    "\u2028import os", "\x00\x0bimport os", "line\r\nimport os", "%(name)s {0} $x", "\u202etxet desrever", r"\u0022\u0022\u0022",
    '\\N{QUOTATION MARK}"""', "a" * 5000,
]  # fmt: skip
NAMES = [
    "__import__", "_private", "x.y", "x y", "x;import os", "", "1x", "lambda", "None", "print", "jnp", "jax", "match", "lax",
    "\u212a", "\uff46", "x\u0301", "x\n", "activation", "self_check", "a-b", "{{x}}", "REFERENCE",
]  # fmt: skip


def code_names(source: str) -> set[str]:
    """Every name that the module uses as code."""
    tree = ast.parse(source)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_texts_stay_in_docstrings(text: str) -> None:
    plain = generate(ModuleSpec("plain", "Plain.", (KERNEL,))).source
    kernel = ScalarKernel("f", (Argument("x", (), text),), KERNEL.outputs, text)
    module = generate(ModuleSpec("plain", text, (kernel,), statement=text, equations=(text,), citations=(text,)))
    assert code_names(module.source) == code_names(plain)
    assert len(ast.parse(module.source).body) == len(ast.parse(plain).body)
    assert module.load().self_check().passed


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_docstring_text_cannot_end_the_string(text: str) -> None:
    clean = docstring_text(text)
    assert '"' not in clean and not clean.endswith("\\") and clean.replace("\n", "").isprintable()
    assert ast.literal_eval(f'r"""{clean}"""') == clean


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_are_checked(name: str) -> None:
    with pytest.raises(NameClash):
        generate(ModuleSpec("m", "t", (scalar_kernel("g", "x", y=x), ScalarKernel(name, (Argument("x"),), (("y", x),)))))
    with pytest.raises(NameClash):
        generate(ModuleSpec("m", "t", (ScalarKernel("g", (Argument(name),), (("y", sp.Integer(1)),)),)))
    with pytest.raises(NameClash):
        generate(ModuleSpec("m", "t", (ScalarKernel("g", (Argument("x"),), ((name, x),)),)))


def test_module_name_is_checked() -> None:
    with pytest.raises(NameClash, match=r"module name '\.\./evil'"):
        generate(ModuleSpec("../evil", "t", (KERNEL,)))


def test_duplicates_and_empty_sets() -> None:
    with pytest.raises(NameClash, match="two kernels are called 'f'"):
        generate(ModuleSpec("m", "t", (KERNEL, KERNEL)))
    with pytest.raises(NameClash, match="called 'x'"):
        generate(ModuleSpec("m", "t", (ScalarKernel("g", (Argument("x"), Argument("x")), (("y", x),)),)))
    with pytest.raises(GenerationError, match="no kernels"):
        generate(ModuleSpec("m", "t", ()))
    with pytest.raises(GenerationError, match="str is no kernel"):
        generate(ModuleSpec("m", "t", ("f",)))  # type: ignore[arg-type]


def test_the_name_of_a_result_may_be_taken_too() -> None:
    """Two outputs make a named tuple `Check`, which the self-check defines; `f_x` and `fX` make the same one."""
    with pytest.raises(NameClash, match="its result is called Check, which is taken"):
        generate(ModuleSpec("m", "t", (scalar_kernel("check", "x", y=x, z=2 * x),)))
    with pytest.raises(NameClash, match="its result is called FX"):
        generate(ModuleSpec("m", "t", (scalar_kernel("f_x", "x", y=x, z=x), scalar_kernel("fX", "x", y=x, z=x))))


def test_temporaries_avoid_argument_names() -> None:
    t0 = sp.Symbol("t0", real=True)
    kernel = scalar_kernel("f", "t0 x", out=sp.tanh(x * t0) ** 2 + sp.tanh(x * t0))
    module = generate(ModuleSpec("m", "t", (kernel,)))
    assert module.check().passed
    assert "t0 = " not in module.source
