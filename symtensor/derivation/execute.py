"""Run a derivation from Python: the same options as on the command line, the result as an object."""

from __future__ import annotations

from typing import Any

import numpy as np

from symtensor.derivation.registry import find
from symtensor.derivation.settings import Option, OptionError, RunContext, RunResult, Settings, command_line

__all__ = ["run"]


def run(name: str, *, quiet: bool = False, **settings: Any) -> Any:
    """Run the derivation `name`; options are given by their names with underscores.

    Returns what the derivation computed (it displays itself in a notebook); files go to the folder `out`. With `quiet`
    nothing is printed. float64 must be on: `jax.config.update("jax_enable_x64", True)` before the first computation.

    Raises
    ------
    ValueError
        For an unknown derivation, an unknown option, or a value that cannot be used; named.

    Examples
    --------
    >>> result = run("resnet-kernel", kernel=2.0, depth=4, samples=0, out="first")    # doctest: +SKIP
    >>> result.values("V4_kernel_only")[-1]                                           # doctest: +SKIP
    """
    derivation = find(str(name))
    options = {option.key: option for option in derivation.options}
    unknown = sorted(set(settings) - set(options))
    if unknown:
        raise OptionError(f"{name} has no option {unknown[0]!r}; it has {', '.join(options)}")
    checked = {key: _checked(options[key], value) for key, value in settings.items()}
    values = Settings.defaults(derivation.options, **checked)
    command = command_line(derivation.name, derivation.options, values)
    result = derivation.run(values, RunContext.silent(command) if quiet else RunContext(command))
    return result.value if isinstance(result, RunResult) and result.value is not None else result


def _checked(option: Option, value: Any) -> Any:
    """The value as the command line would have read it; arrays are passed on as they are."""
    if isinstance(value, list | tuple) or (hasattr(value, "__array__") and getattr(value, "ndim", 0)):
        return np.asarray(value)
    if value is None or (option.is_switch and isinstance(value, bool)):
        return value
    return option.parse(repr(value) if isinstance(value, float) else str(value))
