"""Exported functions: StableHLO for several platforms, in a package that JAX alone can load.

The package is the text of `codegen.artefact`, a manifest and the serialised program. Sizes stay symbolic where the function
allows it; `jax.export` promises to run what it has serialised for six months of later JAX versions and three weeks of earlier.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from symtensor.kernels import Argument, FixedPointKernel, OdeKernel, ScanKernel

from .backends.jax_backend import require_dtype
from .backends.reference import ReferenceBackend
from .errors import GenerationError
from .names import check_identifier, fresh_names
from .points import TOLERANCES, test_arguments
from .reference_text import DIGITS

if TYPE_CHECKING:
    from .compiled import Compiled

__all__ = ["ExportError", "Exported", "export"]

_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
_REAL = {"complex64": "float32", "complex128": "float64"}
#: a date that all entries of a zip have, so that the same function gives the same bytes
_EPOCH = (1980, 1, 1, 0, 0, 0)


class ExportError(GenerationError):
    """A function cannot be exported as asked; the text says which size or option is missing."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A serialised function.

    Attributes
    ----------
    name
        Of the function, and of the package that `save` writes.
    program
        What `jax.export.deserialize` reads.
    manifest
        Arguments, outputs, type, platforms, and points with reference values.
    """

    name: str
    program: bytes
    manifest: Mapping[str, Any]

    @property
    def platforms(self) -> tuple[str, ...]:
        """Where it runs."""
        return tuple(self.manifest["platforms"])

    def files(self) -> dict[str, bytes]:
        """The files of the package by name."""
        loader = (Path(__file__).parent / "artefact.py").read_bytes()
        return {
            "__init__.py": loader,
            "__main__.py": f"from {self.name} import MANIFEST, main\n{_ENABLE}raise SystemExit(main())\n".encode(),
            "manifest.json": (json.dumps(self.manifest, indent=1, sort_keys=True) + "\n").encode(),
            "function.stablehlo": self.program,
        }

    def save(self, path: str | Path) -> Path:
        """Write the package `name` into a folder, or into a file that ends in `.zip`; returns what was written.

        Python imports from both: put the folder, or the zip file, on `sys.path`.
        """
        target = Path(path)
        if target.suffix == ".zip":
            target.parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in self.files().items():
                    archive.writestr(zipfile.ZipInfo(f"{self.name}/{name}", _EPOCH), data)
            return target
        package = target / self.name
        package.mkdir(parents=True, exist_ok=True)
        for name, data in self.files().items():
            (package / name).write_bytes(data)
        return package


_ENABLE = 'import jax\n\nif MANIFEST["x64"]:\n    jax.config.update("jax_enable_x64", True)\n'


def export(
    compiled: Compiled,
    platforms: Iterable[str] = ("cpu", "cuda", "tpu"),
    *,
    sizes: Mapping[str, int] | None = None,
    dtype: str | None = None,
    vjp_order: int = 0,
    **options: int,
) -> Exported:
    """Lower a compiled function for platforms that need not be there, and serialise it.

    Parameters
    ----------
    platforms
        Of cpu, cuda, rocm, tpu.
    sizes
        Dimension -> integer; the others stay symbolic. The arguments of an elementwise function get one leading axis `n`.
    dtype
        By default that of the compiled function, else float64 if JAX has it enabled, else float32.
    vjp_order
        How many times the loaded function can be differentiated in reverse.
    options
        Static options of loops: depth, max_steps.

    Raises
    ------
    ExportError
        An unknown platform, size or option; a size that has to be given; a function that does not lower.
    ValueError
        float64 while JAX runs in float32.
    """
    import jax
    import jax.export
    import jax.numpy as jnp

    chosen = (platforms,) if isinstance(platforms, str) else tuple(platforms)
    for platform in chosen:
        if platform not in _PLATFORMS:
            raise ExportError(f"{compiled.name}: platform {platform!r}; known are {', '.join(_PLATFORMS)}")
    dtype = dtype or compiled.dtype or jnp.dtype(jnp.result_type(float)).name
    require_dtype(_REAL.get(dtype, dtype))
    entries = _entries(compiled, dtype)
    _fix(entries, sizes or {}, compiled.name)
    function = _flat(compiled, entries, _static(compiled, options))
    try:
        exported = jax.export.export(jax.jit(function), platforms=chosen)(*_specs(entries))
        program = bytes(exported.serialize(vjp_order=vjp_order))
    except (TypeError, ValueError, NotImplementedError, RuntimeError) as error:
        symbolic = sorted({n for entry in entries for n in entry["shape"] if isinstance(n, str)})
        hint = f"; give sizes={{'{symbolic[0]}': ..}}, it may depend on them" if symbolic else ""
        raise ExportError(f"{compiled.name} cannot be exported: {str(error).splitlines()[0][:200]}{hint}") from error
    outputs = [{"name": output.name, "shape": list(output.shape)} for output in compiled.outputs]
    manifest = {
        "name": compiled.name, "arguments": entries, "outputs": outputs, "record": compiled.signature.record or "",
        "platforms": list(chosen), "x64": dtype in ("float64", "complex128"), "sha256": sha256(program).hexdigest(),
        "options": dict(sorted(options.items())), "vjp_order": vjp_order, "points": _points(compiled, entries, options),
        "tolerance": TOLERANCES[_REAL.get(dtype, dtype)],
    }  # fmt: skip
    return Exported(check_identifier(compiled.name, "name"), program, manifest)


def _entries(compiled: Compiled, dtype: str) -> list[dict[str, Any]]:
    """Arguments with full shapes; `leading` marks those that the loader broadcasts along a first axis."""
    real = _REAL.get(dtype, dtype)
    arguments = list(compiled.arguments)
    if isinstance(compiled.unbatched, OdeKernel):
        arguments.append(Argument("ts", ("T",)))
    taken = {extent for argument in arguments for extent in argument.shape}
    axis = "n" if "n" not in taken else next(fresh_names("n", map(str, taken)))
    leading = compiled.parameters.leading
    return [
        {
            "name": argument.name,
            "shape": [axis, *argument.shape] if leading and argument.name != "ts" else list(argument.shape),
            "dtype": dtype if argument.name in compiled.complex_arguments else real,
            "leading": leading and argument.name != "ts",
        }
        for argument in arguments
    ]


def _fix(entries: list[dict[str, Any]], sizes: Mapping[str, int], where: str) -> None:
    known = {extent for entry in entries for extent in entry["shape"] if isinstance(extent, str)}
    for name, size in sizes.items():
        if name not in known:
            raise ExportError(f"{where}: there is no size {name!r}; sizes are {', '.join(sorted(known)) or 'all fixed'}")
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ExportError(f"{where}: size {name} is {size!r}; a positive integer is needed")
    for entry in entries:
        entry["shape"] = [sizes.get(extent, extent) for extent in entry["shape"]]


def _static(compiled: Compiled, options: Mapping[str, int]) -> dict[str, int]:
    known = {ScanKernel: ("depth",), OdeKernel: ("max_steps",), FixedPointKernel: ("max_steps",)}
    allowed = known.get(type(compiled.unbatched), ())
    for name in options:
        if name not in allowed:
            raise ExportError(f"{compiled.name}: there is no static option {name!r}; there are: {', '.join(allowed) or 'none'}")
    if "depth" in allowed and "depth" not in options:
        raise ExportError(f"{compiled.name}: a scan is exported for one depth; give depth=..")
    return dict(options)


def _flat(compiled: Compiled, entries: list[dict[str, Any]], static: Mapping[str, int]) -> Any:
    """A function of the arguments by position that returns a plain tuple, which needs no registration to be serialised."""
    names = [entry["name"] for entry in entries]

    def function(*values: Any) -> tuple[Any, ...]:
        result = compiled.function(**dict(zip(names, values)), **static)
        return tuple(result) if isinstance(result, tuple) else (result,)

    return function


def _specs(entries: list[dict[str, Any]]) -> list[Any]:
    import jax
    import jax.export

    scope = jax.export.SymbolicScope()
    return [
        jax.ShapeDtypeStruct(
            jax.export.symbolic_shape(f"({', '.join(map(str, entry['shape']))},)" if entry["shape"] else "()", scope=scope),
            np.dtype(entry["dtype"]),
        )
        for entry in entries
    ]


def _points(compiled: Compiled, entries: list[dict[str, Any]], options: Mapping[str, int]) -> list[dict[str, Any]]:
    """Arguments and what the oracle gives for them, where they fit the exported shapes."""
    if isinstance(compiled.unbatched, OdeKernel) or compiled.complex_arguments:
        return []
    backend, found = ReferenceBackend(compiled.module.spec, DIGITS), []
    for arguments in test_arguments(compiled.kernel, compiled.module.spec):
        arguments = {name: options.get(name, value) if isinstance(value, int) else value for name, value in arguments.items()}
        if not _fits({name: value for name, value in arguments.items() if not isinstance(value, int)}, entries):
            continue
        try:
            expected = backend.evaluate(compiled.name, arguments)
            point = {name: _numbers(arguments[name]) for name in (entry["name"] for entry in entries)}
            found.append({"arguments": point, "expected": {name: _numbers(value) for name, value in expected.items()}})
        except (ArithmeticError, GenerationError, TypeError):
            continue
    return found


def _fits(arguments: Mapping[str, Any], entries: list[dict[str, Any]]) -> bool:
    for entry in entries:
        shape = entry["shape"][1:] if entry["leading"] else entry["shape"]
        own = np.shape(arguments[entry["name"]])
        if len(own) != len(shape) or any(isinstance(n, int) and n != m for n, m in zip(shape, own)):
            return False
        if entry["leading"] and entry["shape"][0] not in (1, "n") and isinstance(entry["shape"][0], int):
            return False
    return True


def _numbers(value: Any) -> Any:
    """Nested lists of doubles."""
    array = np.asarray(value, dtype=object)
    return np.vectorize(lambda entry: float(mpmath.mpf(entry)), otypes=[float])(array).tolist()
