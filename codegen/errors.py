"""Errors of the generator: every one is raised while generating, never by the emitted module."""

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


class ShadowedError(ImportError):
    """Another installed distribution named `codegen` hides this one."""
