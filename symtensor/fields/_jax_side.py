"""Where `symtensor.fields` reaches its numerical side, which imports JAX: on first use, so that formulas work without it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["jax_side"]


def jax_side(name: str) -> ModuleType:
    """The module `symtensor.numerics.<name>`."""
    return import_module(f"symtensor.numerics.{name}")
