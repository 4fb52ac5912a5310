"""What a module is generated from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from symtensor.kernels import Kernel
from symtensor.numerics.rules import Rule

__all__ = ["ModuleSpec"]


@dataclass(frozen=True, slots=True)
class ModuleSpec:
    """A named set of kernels and what the docstring of the module says about them.

    Attributes
    ----------
    name
        Name of the module, an identifier.
    title, statement
        One line, and a paragraph (plain text or LaTeX), for the docstring.
    kernels
        In the order in which they are emitted; a kernel may call earlier ones.
    equations
        LaTeX formulas shown in the docstring.
    citations
        One line each.
    rule
        Quadrature of the moment kernels (`choose_rule` or `parse_rule` of `symtensor.numerics`); kind `closed` uses
        the closed form. Needed only if there is a moment kernel without closed form; None then means `closed`.
    derivatives
        `inside` (sigma^(i) in the expectation) or `hermite` (by parts); `auto` is inside for smooth functions with the
        trapezoid, else hermite.
    reference_points
        Whether the module embeds reference values (30 digits) for its self-check.
    budget
        Operations of a scalar kernel, counted once per output that needs them, up to which it is straight-line code;
        beyond, it is an instruction tape (see `codegen.passes.tape`).
    staging
        Whether functions that several outputs share are evaluated in a stage before (see `codegen.passes.stages`).
    """

    name: str
    title: str
    kernels: tuple[Kernel, ...]
    statement: str = ""
    equations: tuple[str, ...] = ()
    citations: tuple[str, ...] = ()
    rule: Rule = Rule("closed")
    derivatives: Literal["auto", "inside", "hermite"] = "auto"
    reference_points: bool = True
    budget: int = 6000
    staging: bool = True
