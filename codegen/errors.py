"""Errors of the generator: all but `CallError` are raised while generating, none by the emitted module."""

from __future__ import annotations


class GenerationError(ValueError):
    """The kernels cannot become a module; the text names the offending kernel, node, name or shape."""


class UnsupportedNode(GenerationError):
    """An expression contains a node that no printer knows; printing it would fail, or be wrong, when called."""


class NameClash(GenerationError):
    """A name that is no identifier, is reserved, or is used twice."""


class UnboundName(GenerationError):
    """A name is used that no argument, assignment or kernel provides."""


class ShapeError(GenerationError):
    """Shapes of an argument and of what it stands for do not agree."""


class ConstantRange(GenerationError):
    """A constant that the floating type cannot hold: it would become infinite, or zero."""


class DivisionByZero(GenerationError):
    """A denominator, or the argument of a logarithm, that is zero whatever its symbols are."""


class InputError(GenerationError):
    """`symtensor.compile` was given something it cannot read; the text names it and says what can be read."""


class CallError(GenerationError):
    """A compiled function was called with arguments that do not fit its signature; raised before it runs."""


class ShadowedError(ImportError):
    """Another installed distribution named `codegen` hides this one."""
