"""Names and texts that come from users: which identifiers an emitted module may use, and how text becomes a docstring."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable

from .errors import NameClash

__all__ = ["GENERATED", "check_identifier", "class_name", "docstring_text", "fresh_names", "identifier"]

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


def identifier(text: str) -> str:
    r"""A name for generated code made from the name of a symbol, which may be LaTeX, Unicode or a Python keyword.

    Greek letters are spelled out, other letters that are not ASCII become their code point: a Cyrillic letter that looks
    like a Latin one does not become it. Two symbols may get one name; whoever uses this checks that.

    >>> [identifier(text) for text in ("\\alpha_{1}", "x'", "lambda", "\u03c6", "\u0445", "2b", "x\u2081")]
    ['alpha_1', 'x_prime', 'lambda_', 'phi', 'u0445', 'v2b', 'x1']
    """
    spelled = "".join(map(_spelled, text.replace("'", "_prime")))
    clean = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_]", "_", spelled.replace("\\", "").replace("}", ""))).strip("_")
    name = clean if clean[:1].isalpha() else f"v{clean}"
    return f"{name}_" if name in _RESERVED else name


def _spelled(character: str) -> str:
    if character.isascii():
        return character
    words = unicodedata.name(character, "").split()
    if words[:1] == ["GREEK"] and words[2:3] == ["LETTER"] and len(words) == 4:
        letter = words[3].replace("LAMDA", "LAMBDA")  # Unicode's own spelling
        return letter.capitalize() if words[1] == "CAPITAL" else letter.lower()
    plain = unicodedata.normalize("NFKC", character)
    if plain.isdecimal() and plain.isascii():
        return plain
    return f"u{ord(character):04x}"


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
