"""Running and exporting emitted functions with JAX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from symtensor.kernels import Argument, BatchKernel, Kernel, OdeKernel, ScanKernel

if TYPE_CHECKING:
    from ..module import GeneratedModule

__all__ = ["call", "custom_calls", "require_dtype", "stable_hlo", "static_arguments"]


def require_dtype(dtype: str) -> None:
    """Raise unless JAX can hold this type.

    Raises
    ------
    ValueError
        float64 while `jax_enable_x64` is off: arrays would silently become float32.
    """
    import jax

    if dtype == "float64" and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError(
            'float64 was asked for but JAX runs in float32; set jax.config.update("jax_enable_x64", True) or ask for float32'
        )


def call(module: GeneratedModule, name: str, arguments: Mapping[str, Any], dtype: str) -> dict[str, np.ndarray]:
    """Run one emitted function; integers are passed on as they are (static arguments)."""
    import jax.numpy as jnp

    require_dtype(dtype)
    given = {
        key: value if isinstance(value, int) else jnp.asarray(np.asarray(value, dtype=float), dtype)
        for key, value in arguments.items()
    }
    result = getattr(module.load(), name)(**given)
    found = result._asdict() if hasattr(result, "_asdict") else {module.signatures[name].outputs[0].name: result}
    return {key: np.asarray(value) for key, value in found.items()}


def static_arguments(module: GeneratedModule, name: str, depth: int) -> dict[str, int]:
    """Static arguments of loops, batched or not."""
    return {"depth": depth} if isinstance(_unbatched(module, name), ScanKernel) else {}


def _unbatched(module: GeneratedModule, name: str) -> Kernel:
    by_name = {kernel.name: kernel for kernel in module.kernels}
    kernel = by_name[name]
    return by_name[kernel.inner] if isinstance(kernel, BatchKernel) else kernel


def stable_hlo(module: GeneratedModule, name: str, platform: str, dtype: str, size: int = 3) -> str:
    """The StableHLO of one emitted function for a platform, by `jax.export` (needs no such device)."""
    import jax

    require_dtype(dtype)
    arguments = list(module.signatures[name].arguments)
    if isinstance(_unbatched(module, name), OdeKernel):
        arguments.append(Argument("ts", ("T",)))
    specs = {
        argument.name: jax.ShapeDtypeStruct(
            tuple(extent if isinstance(extent, int) else size for extent in argument.shape), np.dtype(dtype)
        )
        for argument in arguments
    }
    function = getattr(module.load(), name)
    static = static_arguments(module, name, 3)
    exported = jax.export.export(jax.jit(lambda values: function(**values, **static)), platforms=[platform])(specs)
    return exported.mlir_module()


def custom_calls(text: str) -> set[str]:
    """Targets of custom calls in StableHLO."""
    return set(re.findall(r'custom_call\s+@([\w.$]+)', text)) | set(re.findall(r'call_target_name\s*=\s*"([^"]+)"', text))
