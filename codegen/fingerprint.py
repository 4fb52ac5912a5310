"""The address of a generated module: a digest of the specification and of everything that turns it into text.

The same mathematics gives the same digest in every process. Nothing here depends on hashes or on the counters of SymPy's
dummies, which are numbered in the order in which they are met.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import sympy as sp

__all__ = ["Unaddressable", "fingerprint", "generator_digest"]

#: libraries whose version changes the text
_LIBRARIES = ("sympy", "mpmath", "jinja2", "numpy")
#: packages of symtensor that generation uses
_PACKAGES = ("activation", "derivation", "expansion", "numerics", "tensor")


class Unaddressable(TypeError):
    """A specification holds an object that has no address; it is generated, but not kept."""


def fingerprint(spec: Any) -> str:
    """The digest of a specification together with that of the generator, 64 hexadecimal digits.

    Raises
    ------
    Unaddressable
        An object in it is neither a number, a text, a SymPy object nor a dataclass of those.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> fingerprint((x + y,)) == fingerprint((y + x,)) != fingerprint((x - y,))
    True
    """
    return sha256(f"{generator_digest()}\n{_Encoder().digest(spec)}".encode()).hexdigest()


@lru_cache(maxsize=1)
def generator_digest() -> str:
    """Digest of the generator's own files and of the versions of its libraries."""
    import symtensor

    here, mathematics = Path(__file__).parent, Path(symtensor.__file__).parent
    own = [path for pattern in ("*.py", "*.jinja") for path in here.rglob(pattern)]
    files = {f"codegen/{path.relative_to(here).as_posix()}": path for path in own}
    for package in _PACKAGES:
        files |= {path.relative_to(mathematics).as_posix(): path for path in (mathematics / package).rglob("*.py")}
    state = sha256()
    for name in sorted(files):
        state.update(name.encode() + b"\0" + sha256(files[name].read_bytes()).digest())
    for library in _LIBRARIES:
        try:
            state.update(f"{library} {version(library)}\n".encode())
        except PackageNotFoundError:  # a library that is on the path without being installed
            state.update(f"{library} unknown\n".encode())
    return state.hexdigest()


@dataclass(slots=True)
class _Encoder:
    """Digests of one specification; subexpressions are digested once."""

    known: dict[sp.Basic, str] = field(default_factory=dict)
    dummies: dict[sp.Dummy, int] = field(default_factory=dict)

    def digest(self, value: Any) -> str:
        """The digest of any value."""
        if isinstance(value, sp.Basic):
            return self._basic(value)
        if isinstance(value, sp.MatrixBase):
            return self._basic(sp.ImmutableMatrix(value))
        return sha256(self._text(value).encode()).hexdigest()

    def _text(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int | float | complex | str):
            return f"{type(value).__name__}:{value!r}"
        if isinstance(value, list | tuple):
            return f"sequence:{','.join(map(self.digest, value))}"
        if isinstance(value, frozenset | set):
            return f"set:{','.join(sorted(map(self.digest, value)))}"
        if isinstance(value, Mapping):
            return f"mapping:{','.join(f'{self.digest(key)}={self.digest(each)}' for key, each in value.items())}"
        if is_dataclass(value) and not isinstance(value, type):
            parts = (f"{each.name}={self.digest(getattr(value, each.name))}" for each in fields(value) if each.init)
            return f"{type(value).__module__}.{type(value).__qualname__}({','.join(parts)})"
        raise Unaddressable(f"{str(value)[:60]!r} of type {type(value).__name__} has no address")

    def _basic(self, expression: sp.Basic) -> str:
        """From the leaves up, without recursion."""
        stack = [expression]
        while stack:
            node = stack[-1]
            below = [argument for argument in node.args if isinstance(argument, sp.Basic)]
            missing = [argument for argument in below if argument not in self.known]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            if node not in self.known:
                self.known[node] = sha256(self._node(node).encode()).hexdigest()
        return self.known[expression]

    def _node(self, node: sp.Basic) -> str:
        kind = f"{type(node).__module__}.{type(node).__name__}"
        if isinstance(node, sp.Dummy):
            number = self.dummies.setdefault(node, len(self.dummies))
            return f"{kind}:{node.name}:{number}:{sorted(node._assumptions_orig.items())}"
        if isinstance(node, sp.Symbol):
            return f"{kind}:{node.name}:{sorted(node._assumptions_orig.items())}"
        if isinstance(node, sp.Float):
            return f"{kind}:{node._mpf_}:{node._prec}"
        if not node.args:
            return f"{kind}:{sp.srepr(node)}"
        return f"{kind}({','.join(self.digest(argument) for argument in node.args)})"
