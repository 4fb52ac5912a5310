"""Names and texts that come from users: which identifiers an emitted module may use, and how text becomes a docstring."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from .errors import NameClash

__all__ = ["GENERATED", "check_identifier", "class_name", "docstring_text", "fresh_names"]

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")

#: module-level names of the templates; kernels and arguments must not be called like this
GENERATED = frozenset(
    "jax jnp lax diffrax Any Array NamedTuple partial annotations erf erfc "
    "activation activation_derivatives nodes RULE ORDERS MIRROR BATCH_NODES REFERENCE TOLERANCE "
    "Check self_check main comb Callable".split()
)
_RESERVED = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins)) | GENERATED


def check_identifier(name: object, what: str, *, reserved: bool = True) -> str:
    """Return `name` if it can be a name in an emitted module.

    Raises
    ------
    NameClash
        Not a string of ASCII letters, digits and underscores starting with a letter (so neither dunder names nor
        Unicode look-alikes), or reserved: a Python keyword, a builtin, or a name the templates define.
    """
    if not isinstance(name, str) or not _IDENTIFIER.match(name):
        shown = name if not isinstance(name, str) else name[:60]
        raise NameClash(
            f"{what} {shown!r} is no name for generated code; use ASCII letters, digits and underscores, a letter first"
        )
    if reserved and name in _RESERVED:
        kind = "a Python keyword" if keyword.iskeyword(name) else "used by Python or by the emitted module itself"
        raise NameClash(f"{what} {name!r} is {kind}; choose another name, for example {name + '_value'!r}")
    return name


def class_name(kernel: str) -> str:
    """The named tuple of a kernel: `layer` -> `Layer`, `kernel_step` -> `KernelStep`."""
    return "".join(part[:1].upper() + part[1:] for part in kernel.split("_")) + ("_" if kernel[:1].isupper() else "")


def fresh_names(prefix: str, taken: Iterable[str]):
    """prefix0, prefix1, .. leaving out names in `taken`."""
    used, number = set(taken), 0
    while True:
        name = f"{prefix}{number}"
        number += 1
        if name not in used:
            yield name


def docstring_text(text: str) -> str:
    r"""User text for a raw docstring of an emitted module: it cannot end the string or start another statement.

    Docstrings are raw (LaTeX keeps its backslashes), so a quote cannot be escaped in them: runs of double quotes and a
    trailing backslash are replaced; control characters and line separators become spaces.

    >>> docstring_text("a " + 3 * chr(34) + " b" + chr(92))
    "a ''' b/"
    """
    lines = []
    for line in str(text).replace("\r\n", "\n").split("\n"):
        clean = "".join(character if character.isprintable() else " " for character in line)
        lines.append(clean.replace('"', "'").rstrip())
    joined = "\n".join(lines).strip()
    return joined[:-1] + "/" if joined.endswith("\\") else joined
