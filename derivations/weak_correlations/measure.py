"""What is measured: C_{D,d} at initialisation, and training, of networks or of a user's model, by width."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.derivation.settings import OptionError, Settings

__all__ = ["OPERATORS", "VECTORS", "Family", "family_of", "measured_contractions", "numbers_of", "training_data"]

Family = Callable[[int], tuple[Callable[..., Any], Callable[..., Any]]]
#: (D, d) that are measured: numbers and vectors, and operators, whose spectral norm costs a Lanczos iteration each
VECTORS = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (1, 3))
OPERATORS = ((2, 0), (2, 1))


def numbers_of(text: str, option: str, kind: Callable[[str], Any] = int) -> tuple[Any, ...]:
    """The numbers of a comma-separated option. Raises OptionError naming it.

    >>> numbers_of("64, 128", "--widths")
    (64, 128)
    """
    try:
        found = tuple(kind(part.strip()) for part in text.split(","))
    except (ValueError, ZeroDivisionError):
        raise OptionError(f"{option} {text!r}: numbers with commas between them are required, such as 64,128,256") from None
    if len(set(found)) < len(found):
        raise OptionError(f"{option} {text!r} has a number twice")
    return found


def family_of(settings: Settings, inputs: int) -> tuple[str, Family]:
    """Name and models by width: the network that is asked for, or the user's.

    Raises:
        OptionError: a module or function that cannot be imported, or does not give (apply, init).
    """
    if settings["model"]:
        return settings["model"], _user_family(settings["model"])
    from symtensor.numerics.neural_networks import fully_connected

    depth, phi = settings["depth"], settings["activation"]

    def family(n: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
        net = fully_connected((inputs, *[n] * depth), phi)
        return net.apply, net.init

    layers = ("one hidden layer", "two hidden layers", "three hidden layers")
    return (layers[depth - 1] if depth <= len(layers) else f"{depth} hidden layers"), family


def _user_family(text: str) -> Family:
    module, mark, name = text.partition(":")
    if not mark or not module or not name:
        raise OptionError(f"--model {text!r}: MODULE:FUNCTION is required, such as my_module:family")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise OptionError(f"--model {text!r}: no module {error.name!r} here or on the path of Python") from None
    except AttributeError:
        raise OptionError(f"--model {text!r}: {module} has no {name!r}") from None
    finally:
        sys.path.pop(0)

    def family(n: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
        given = found(n)
        if not (isinstance(given, Sequence) and len(given) == 2 and all(map(callable, given))):
            raise OptionError(f"--model {text!r}: {name}({n}) must give the pair (apply, init), not {type(given).__name__}")
        return given[0], given[1]

    return family


def training_data(settings: Settings) -> Any:
    """The images as a data set with targets -1 and +1."""
    from symtensor.datasets import load

    classes = numbers_of(settings["classes"], "--classes")
    return load(
        settings["data"], train=settings["train"], test=settings["test"], classes=classes, targets="sign", scaling="sphere",
        seed=settings["seed"],
    )  # fmt: skip


def measured_contractions(
    family: Family, x: NDArray[np.float64], sizes: Sequence[int], samples: int, seed: int,
    progress: Callable[[int, int], None], pairs: Sequence[tuple[int, int]] = VECTORS,
) -> dict[str, NDArray[np.float64]]:
    """|C_{0,d}| and the norms of C_{1,d}, C_{2,d} at learning rate 1 on one input: {"C_0_2": (sizes, samples), ..}."""
    from symtensor.numerics.contractions import derivative_contractions

    orders: dict[int, list[int]] = {}
    for D, d in pairs:
        orders.setdefault(D, []).append(d)
    found: dict[str, list[NDArray[np.float64]]] = {f"C_{D}_{d}": [] for D, d in pairs}
    for at, n in enumerate(sizes):
        apply, init = family(n)
        seeds = np.random.default_rng([seed, n]).integers(0, 2**31, samples).tolist()
        result = derivative_contractions(apply, init, np.asarray(x)[None], orders=orders, seeds=seeds)
        for D, d in pairs:
            found[f"C_{D}_{d}"].append(np.asarray(result[D, d].size)[:, 0])
        progress(at + 1, len(sizes))
    return {name: np.stack(rows) for name, rows in found.items()}
