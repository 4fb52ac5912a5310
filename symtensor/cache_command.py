"""The command `symtensor cache info|verify|clear|path`: generated modules kept on disk.

The cache itself is `codegen.cache`. Errors are raised, addressed to the user; `symtensor.cli` turns them into one message and
exit status 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symtensor._codegen import codegen
from symtensor.arguments import Formatter, Parser

__all__ = ["main"]

PROGRAM = "symtensor cache"
_EPILOG = """\
actions
  info      the folder, how many modules and compiled programs it holds, and their size
  verify    read every module and compare it with the digest it is stored under; damaged ones are removed (status 1 if any)
  clear     remove what the cache has made, and nothing else
  path      print the folder

the folder
  SYMTENSOR_CACHE_DIR, else symtensor in XDG_CACHE_HOME or ~/.cache. Modules are kept when symtensor.compile(.., cache=True) asks
  for it; programs that JAX has compiled, within codegen.compilation_cache()."""


def main(arguments: Sequence[str]) -> int:
    """Run `symtensor cache` with `arguments`; returns the exit status.

    Raises
    ------
    UsageError
        No action, or an unknown one.
    """
    parser = Parser(
        prog=PROGRAM, usage=f"{PROGRAM} info|verify|clear|path", description="Generated modules kept on disk.", epilog=_EPILOG,
        formatter_class=Formatter, allow_abbrev=False, add_help=False,
    )  # fmt: skip
    parser.add_argument("action", choices=tuple(_ACTIONS))
    if any(argument in ("-h", "--help") for argument in arguments):
        print(parser.format_help(), end="")
        return 0
    return _ACTIONS[parser.parse_args(list(arguments)).action](codegen().Cache())


def _info(cache: Any) -> int:
    _print(cache.info())
    return 0


def _print(info: Any) -> None:
    print(f"folder             {info.root}")
    print(f"modules            {info.entries} ({_bytes(info.size)})")
    print(f"compiled programs  {info.compiled_entries} files ({_bytes(info.compiled_size)})")


def _verify(cache: Any) -> int:
    info = cache.verify()
    _print(info)
    for path in info.corrupt:
        print(f"damaged, removed   {path.relative_to(info.root)}")
    print("all modules are intact" if not info.corrupt else f"{len(info.corrupt)} damaged; they are generated anew when needed")
    return 1 if info.corrupt else 0


def _clear(cache: Any) -> int:
    before = cache.info()
    removed = cache.clear()
    print(f"removed {removed} files ({_bytes(before.size + before.compiled_size)}) from {cache.root}")
    return 0


def _path(cache: Any) -> int:
    print(cache.root)
    return 0


def _bytes(size: int) -> str:
    number = float(size)
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


_ACTIONS = {"info": _info, "verify": _verify, "clear": _clear, "path": _path}
