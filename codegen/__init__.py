"""Code generation: a derivation's kernels become one readable JAX module.

    analyse   names, shapes, symbols: everything wrong with the input is reported here, by name     analyse.py
    lower     kernels -> typed functions; one file per kernel kind                                   lower/, ir.py, graph.py
    optimise  passes over scalar graphs: exact folding, stable forms, Horner, powers, order, CSE     passes/
    render    functions -> text (strict printers, Jinja2 templates)                         printers/, render.py, templates/
    load      text -> module                                                                         load.py
    check     every function against an oracle that evaluates the input before any pass              check.py, backends/

>>> from codegen import ModuleSpec, generate
>>> module = generate(ModuleSpec(...))      # doctest: +SKIP
>>> module.write("out"); module.load().moments(K)    # doctest: +SKIP

Importing this package imports neither JAX nor Jinja2; `generate` needs Jinja2, `load` and `check` need JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import GenerationError, NameClash, ShapeError, UnboundName, UnsupportedNode
from .spec import ModuleSpec

if TYPE_CHECKING:
    from .check import check_module, lowers
    from .load import load
    from .module import GeneratedModule, generate

__all__ = [
    "GeneratedModule",
    "GenerationError",
    "ModuleSpec",
    "NameClash",
    "ShapeError",
    "UnboundName",
    "UnsupportedNode",
    "check_module",
    "generate",
    "load",
    "lowers",
]

_LAZY = {
    "GeneratedModule": "module", "generate": "module", "load": "load", "check_module": "check", "lowers": "check",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
