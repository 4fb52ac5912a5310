"""Import generated source through the import machinery, under a private name, so that tracebacks show its lines."""

from __future__ import annotations

import importlib.util
import linecache
from functools import lru_cache
from importlib.abc import InspectLoader
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .module import GeneratedModule

__all__ = ["load"]


class _SourceLoader(InspectLoader):
    """Gives the import system a text."""

    def __init__(self, filename: str, source: str) -> None:
        self.filename = filename
        self.source = source

    def get_source(self, fullname: str) -> str:
        return self.source

    def get_filename(self, fullname: str) -> str:
        return self.filename

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.source, self.filename, "exec", dont_inherit=True), module.__dict__)


def load(module: GeneratedModule) -> ModuleType:
    """The emitted module, executed; the same source is executed once, so that compiled functions are kept.

    Raises
    ------
    ImportError
        JAX (or diffrax, for a module with an ODE) is not installed.
    """
    return _load(module.name, module.source)


@lru_cache(maxsize=64)
def _load(name: str, source: str) -> ModuleType:
    filename = f"<generated {name}>"
    loader = _SourceLoader(filename, source)
    spec = importlib.util.spec_from_loader(f"_generated_{name}", loader, origin=filename)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    # for tracebacks: the lines of a module that is on no disk
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return module
