"""The one place where `symtensor` reaches the code generator: lazily, and with a clear error if another package hides it.

`symtensor` never imports `codegen` statically, so it works without JAX and Jinja2.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["codegen"]


def codegen() -> ModuleType:
    """The package `codegen` that belongs to symtensor.

    Raises
    ------
    ImportError
        It is not installed, or another distribution called `codegen` comes first on the path.

    Examples
    --------
    >>> codegen().ModuleSpec.__name__
    'ModuleSpec'
    """
    package = import_module("codegen")
    if not hasattr(package, "ModuleSpec"):
        place = getattr(package, "__file__", None) or ", ".join(getattr(package, "__path__", [])) or "an unknown place"
        raise ImportError(
            f"the package 'codegen' found at {place} is not the one of symtensor but another one of the same name; "
            "uninstall it, or put symtensor's installation first on the path"
        )
    return package
