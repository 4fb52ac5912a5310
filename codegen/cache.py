"""Generated modules on disk, under the digest of what they are generated from.

An entry is one file, written beside its place and moved there in one step, so that readers see the whole of it or nothing,
however many processes write. It holds the digest of its contents: an entry that was cut short or changed is noticed, removed
and made anew. Only texts and counts are stored; nothing is unpickled.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from .analyse import analyse
from .cost import Cost
from .fingerprint import Unaddressable, fingerprint
from .module import GeneratedModule, generate
from .spec import ModuleSpec

__all__ = ["VARIABLE", "Cache", "CacheInfo", "compilation_cache", "default_root"]

_FORMAT = 1
#: the environment variable that names the folder
VARIABLE = "SYMTENSOR_CACHE_DIR"


def default_root() -> Path:
    """SYMTENSOR_CACHE_DIR, else the folder `symtensor` in XDG_CACHE_HOME or ~/.cache."""
    given = os.environ.get(VARIABLE, "")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "symtensor"


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """Numbers of entries and bytes: modules, and what JAX compiled; `corrupt` entries only after a verification."""

    root: Path
    entries: int
    size: int
    compiled_entries: int
    compiled_size: int
    corrupt: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache of generated modules in a folder, which is made when the first module is stored.

    Examples
    --------
    >>> import sympy as sp, tempfile
    >>> from codegen import ModuleSpec
    >>> from symtensor.kernels import Argument, ScalarKernel
    >>> kernel = ScalarKernel("f", (Argument("x"),), (("y", sp.Symbol("x") ** 2),))
    >>> spec = ModuleSpec("squares", "Squares.", (kernel,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = Cache(Path(folder))
    ...     first, second = cache.generate(spec), cache.generate(spec)
    ...     first.source == second.source, cache.info().entries
    (True, 1)
    """

    root: Path = field(default_factory=default_root)

    @property
    def modules(self) -> Path:
        """The folder of the modules."""
        return self.root / "modules"

    @property
    def compiled(self) -> Path:
        """The folder for JAX's own cache of compiled programs; see `compilation_cache`."""
        return self.root / "jax"

    def generate(self, spec: ModuleSpec) -> GeneratedModule:
        """The module of a specification, read from the cache or generated and stored.

        A folder that cannot be written, or a specification without an address, costs time and nothing else.

        Raises
        ------
        GenerationError
            As `codegen.generate` does; errors are not stored.
        """
        try:
            key = fingerprint(spec)
        except Unaddressable:
            return generate(spec)
        found = self._read(key, spec)
        if found is not None:
            return found
        module = generate(spec)
        with suppress(OSError):
            self._store(key, module)
        return module

    def path(self, key: str) -> Path:
        """Where an entry lies."""
        return self.modules / key[:2] / f"{key[2:]}.json"

    # -- entries -------------------------------------------------------------------------------------------------------

    def _read(self, key: str, spec: ModuleSpec) -> GeneratedModule | None:
        path = self.path(key)
        try:
            content = _opened(path.read_bytes(), key)
        except OSError:
            return None
        if content is None:
            with suppress(OSError):
                path.unlink()
            return None
        cost = {name: Cost(**numbers) for name, numbers in content["cost"].items()}
        return GeneratedModule(content["name"], content["source"], spec, analyse(spec), cost)

    def _store(self, key: str, module: GeneratedModule) -> None:
        content = {
            "key": key, "name": module.name, "source": module.source,
            "cost": {name: asdict(cost) for name, cost in module.cost.items()},
        }  # fmt: skip
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_closed(content))
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise

    def entries(self) -> Iterator[Path]:
        """The files of all entries, in a fixed order."""
        yield from sorted(self.modules.glob("??/*.json"))

    # -- commands ------------------------------------------------------------------------------------------------------

    def info(self) -> CacheInfo:
        """How much is stored."""
        sizes = [_size(path) for path in self.entries()]
        jax_sizes = [_size(path) for path in self.compiled.rglob("*") if path.is_file()] if self.compiled.is_dir() else []
        return CacheInfo(self.root, len(sizes), sum(sizes), len(jax_sizes), sum(jax_sizes))

    def verify(self, *, remove: bool = True) -> CacheInfo:
        """Read every entry; those whose digest or place is wrong are listed as corrupt, and removed if asked for."""
        corrupt = []
        for path in self.entries():
            try:
                content = _opened(path.read_bytes(), path.parent.name + path.stem)
            except OSError:
                continue  # another process has just removed it
            if content is None:
                corrupt.append(path)
                if remove:
                    path.unlink(missing_ok=True)
        info = self.info()
        return CacheInfo(info.root, info.entries, info.size, info.compiled_entries, info.compiled_size, tuple(corrupt))

    def clear(self) -> int:
        """Remove all entries, left-over partial files and JAX's compiled programs; returns how many files went.

        Only files that this cache made are removed: `modules/??/*.json` and `.part`, and what lies in `jax`.
        """
        made = [*self.entries(), *self.modules.glob("??/.*.part")]
        made += [path for path in self.compiled.rglob("*") if path.is_file()] if self.compiled.is_dir() else []
        removed = 0
        for path in made:
            with suppress(OSError):
                path.unlink()
                removed += 1
        folders = [*self.modules.glob("??"), self.modules, *sorted(self.compiled.rglob("*"), reverse=True), self.compiled]
        for folder in folders:
            with suppress(OSError):  # not empty: something that is not ours, or was written meanwhile
                folder.rmdir()
        return removed


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _closed(content: dict[str, Any]) -> bytes:
    """Contents with their digest in the first line."""
    body = json.dumps(content, sort_keys=True, ensure_ascii=True).encode()
    return f"symtensor-module {_FORMAT} {sha256(body).hexdigest()}\n".encode() + body


def _opened(data: bytes, key: str) -> dict[str, Any] | None:
    """Contents, or None if they are not what was written under this key."""
    head, _, body = data.partition(b"\n")
    if head != f"symtensor-module {_FORMAT} {sha256(body).hexdigest()}".encode():
        return None
    content = json.loads(body)
    return content if content.get("key") == key else None


@contextmanager
def compilation_cache(folder: str | Path | None = None) -> Iterator[Path]:
    """Within this context JAX keeps every program that it compiles in a folder, and reads it from there.

    JAX's settings are those of the caller again afterwards.

    Parameters
    ----------
    folder
        By default the folder `jax` of the cache of generated modules, which `symtensor cache clear` empties too.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache as jax_cache

    target = Path(folder) if folder is not None else Cache().compiled
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    wanted = {
        "jax_enable_compilation_cache": True,
        "jax_compilation_cache_dir": str(target),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in wanted}
    try:
        for name, value in wanted.items():
            jax.config.update(name, value)
        jax_cache.reset_cache()  # JAX reads the folder once
        yield target
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        jax_cache.reset_cache()
