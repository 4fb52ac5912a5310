"""Code generation: a derivation's kernels become one readable JAX module.

    analyse   names, shapes, symbols: everything wrong with the input is reported here, by name     analyse.py
    lower     kernels -> typed functions; one file per kernel kind                                   lower/, ir.py, graph.py
    optimise  passes over scalar graphs: exact folding, stable forms, Horner, powers, order, CSE     passes/
    render    functions -> text (strict printers, Jinja2 templates)                         printers/, render.py, templates/
    load      text -> module                                                                         load.py
    check     every function against an oracle that evaluates the input before any pass              check.py, backends/

    front     formulas, arrays, tensors, expectations, recursions -> kernels: `symtensor.compile`     front/, compiled.py
    keep      a cache on disk; StableHLO that runs elsewhere                                          cache.py, export.py

>>> from codegen import ModuleSpec, generate
>>> module = generate(ModuleSpec(...))      # doctest: +SKIP
>>> module.write("out"); module.load().moments(K)    # doctest: +SKIP

Importing this package imports neither JAX nor Jinja2; `generate` needs Jinja2, `load` and `check` need JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import (
    CallError,
    ConstantRange,
    DivisionByZero,
    GenerationError,
    InputError,
    NameClash,
    ShapeError,
    UnboundName,
    UnsupportedNode,
)
from .spec import ModuleSpec

if TYPE_CHECKING:
    from .cache import Cache, compilation_cache
    from .check import check_module, lowers
    from .compiled import Compiled
    from .front import compile
    from .load import load
    from .module import GeneratedModule, generate

__all__ = [
    "Cache",
    "CallError",
    "Compiled",
    "ConstantRange",
    "DivisionByZero",
    "GeneratedModule",
    "GenerationError",
    "InputError",
    "ModuleSpec",
    "NameClash",
    "ShapeError",
    "UnboundName",
    "UnsupportedNode",
    "check_module",
    "compilation_cache",
    "compile",
    "generate",
    "load",
    "lowers",
]

_LAZY = {
    "GeneratedModule": "module", "generate": "module", "load": "load", "check_module": "check", "lowers": "check",
    "Cache": "cache", "compilation_cache": "cache", "Compiled": "compiled", "compile": "front",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
