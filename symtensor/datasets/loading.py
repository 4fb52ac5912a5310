"""A data set as a training run needs it: a seeded subset, scaled inputs, numerical targets."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from symtensor.datasets.errors import DatasetError
from symtensor.datasets.files import Images, read_images

__all__ = ["Dataset", "load"]

Array = NDArray[np.float64]
Scaling = Literal["sphere", "standard", "unit", "none"]
Targets = Literal["one-hot", "centred", "sign"]

#: sets that need local files, with what to look for
KNOWN = {
    "mnist": "a folder with train-images-idx3-ubyte and train-labels-idx1-ubyte",
    "fashionmnist": "a folder with train-images-idx3-ubyte and train-labels-idx1-ubyte",
    "cifar10": "the folder cifar-10-batches-py or cifar-10-batches-bin",
    "cifar100": "the folder cifar-100-python or cifar-100-binary",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """Inputs, targets and labels of the training and of the test part.

    Attributes
    ----------
    inputs, test_inputs : (N, n_0) and (M, n_0), or with the shape of the images; scaled as `scaling` says.
    targets, test_targets : (N, K) or (N,); labels, test_labels : (N,), the numbers in the files.
    classes : the K labels, in the order of the targets' columns (for "sign": the one with -1, the one with +1).
    image_shape : (rows, columns) or (rows, columns, channels).
    """

    inputs: Array
    targets: Array
    labels: NDArray[np.int64]
    test_inputs: Array
    test_targets: Array
    test_labels: NDArray[np.int64]
    classes: tuple[int, ...]
    image_shape: tuple[int, ...]
    scaling: str
    name: str

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.image_shape))
        return (
            f"{self.name}: {len(self.inputs)} training and {len(self.test_inputs)} test images of {shape}, classes "
            f"{', '.join(map(str, self.classes))}, scaling {self.scaling!r}"
        )


def load(
    source: str | Path = "digits",
    *,
    train: int | None = 128,
    test: int | None = 256,
    classes: Sequence[int] | None = None,
    targets: Targets = "one-hot",
    scaling: Scaling = "sphere",
    flatten: bool = True,
    seed: int = 0,
) -> Dataset:
    """A subset of a labelled set of images, ready for `symtensor.numerics.training.train`.

    Parameters
    ----------
    source : "digits" (scikit-learn's 1797 images of 8 x 8, always there), or the path of a folder or file that `read_images` knows.
    train, test : numbers of images, None for all. Without test files the test part is drawn from the rest of the training files
        (None: all of the rest).
    classes : the labels to keep; all by default.
    targets : "one-hot" (N, K); "centred", the same minus 1/K; "sign" (N,), -1 and +1 for two classes.
    scaling : "sphere", every input to |x|^2 = n_0; "standard", minus the mean and divided by the standard deviation over all pixels
        of the training part; "unit", 0 to 1 by the format's range; "none".
    flatten : inputs as vectors (N, n_0), else as images.
    seed : of the choice of images.

    Raises
    ------
    DatasetError
        Files missing or damaged, more images asked for than there are, an unknown class or option.

    Examples
    --------
    >>> data = load("digits", train=100, test=50, classes=(3, 8), targets="sign")
    >>> data
    digits: 100 training and 50 test images of 8 x 8, classes 3, 8, scaling 'sphere'
    >>> data.inputs.shape, sorted(set(data.targets.tolist())), bool(np.allclose((data.inputs**2).sum(axis=1), 64))
    ((100, 64), [-1.0, 1.0], True)
    """
    _check_options(targets, scaling)
    name, raw = _raw(source)
    kept = _kept_classes(raw, classes, name)
    if targets == "sign" and len(kept) != 2:
        raise DatasetError(f"targets = 'sign' needs two classes, there are {len(kept)}; give classes=({kept[0]}, ..), or 'one-hot'")
    first, second = _parts(raw, kept, train, test, seed, name)
    scaled = _scaled([first[0], second[0]], raw, scaling, name)
    pixels = int(np.prod(raw.images.shape[1:]))
    inputs, test_inputs = (part.reshape(len(part), pixels) if flatten else part for part in scaled)
    return Dataset(
        inputs=inputs, targets=_targets(first[1], kept, targets), labels=first[1],
        test_inputs=test_inputs, test_targets=_targets(second[1], kept, targets), test_labels=second[1],
        classes=kept, image_shape=raw.images.shape[1:], scaling=scaling, name=name,
    )  # fmt: skip


def _check_options(targets: str, scaling: str) -> None:
    for name, value, known in (
        ("targets", targets, ("one-hot", "centred", "sign")),
        ("scaling", scaling, ("sphere", "standard", "unit", "none")),
    ):
        if value not in known:
            raise DatasetError(f"{name} = {value!r}; required: {', '.join(map(repr, known))}")


def _raw(source: str | Path) -> tuple[str, Images]:
    """Name and images; a bare name of a set that needs files says which files."""
    if isinstance(source, str) and not source.strip():
        raise DatasetError("the source is empty; give 'digits', or the path of a folder or file")
    if source == "digits":
        from sklearn.datasets import load_digits

        bunch: Any = load_digits()
        return "digits", Images(bunch.images, bunch.target.astype(np.int64), None, None, "scikit-learn", "digits")
    plain = str(source).lower().replace("-", "").replace("_", "")
    if plain in KNOWN and not Path(source).expanduser().exists():
        raise DatasetError(f"{str(source)!r} needs local files (nothing is downloaded): give {KNOWN[plain]}; 'digits' needs none")
    return Path(source).expanduser().resolve().name, read_images(source)


def _kept_classes(raw: Images, classes: Sequence[int] | None, name: str) -> tuple[int, ...]:
    present = sorted(set(raw.labels.tolist()))
    if classes is None:
        return tuple(present)
    kept = tuple(_count("a class", label) for label in classes)
    missing = [label for label in kept if label not in present]
    if missing or not kept or len(set(kept)) < len(kept):
        shown = ", ".join(map(str, present[:20]))
        wrong = f"class {missing[0]} is not in {name}" if missing else f"classes = {kept}: at least one, and distinct, required"
        raise DatasetError(f"{wrong}; its classes are {shown}")
    return kept


def _count(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise DatasetError(f"{name} = {value!r} must be an integer") from None
    if isinstance(value, bool) or number < 0:
        raise DatasetError(f"{name} = {value!r} must be a non-negative integer")
    return number


Part = tuple[NDArray[Any], NDArray[np.int64]]


def _parts(raw: Images, kept: tuple[int, ...], train: int | None, test: int | None, seed: int, name: str) -> tuple[Part, Part]:
    """Training and test images and labels: random subsets without repetition, disjoint."""
    rng = np.random.default_rng(_count("seed", seed))
    order = rng.permutation(np.flatnonzero(np.isin(raw.labels, kept)))
    wanted = len(order) if train is None else _count("train", train)
    if wanted < 1 or wanted > len(order):
        raise DatasetError(f"train = {train}: {name} has {len(order)} training images of these classes; ask for 1 to {len(order)}")
    chosen = order[:wanted]
    if raw.test_images is None or raw.test_labels is None:
        rest, images, labels = order[wanted:], raw.images, raw.labels
    else:
        rest, images, labels = rng.permutation(np.flatnonzero(np.isin(raw.test_labels, kept))), raw.test_images, raw.test_labels
    asked = len(rest) if test is None else _count("test", test)
    if asked > len(rest):
        raise DatasetError(f"test = {test}: only {len(rest)} test images of these classes are left in {name}; ask for fewer")
    return (raw.images[chosen], raw.labels[chosen]), (images[rest[:asked]], labels[rest[:asked]])


def _scaled(parts: list[NDArray[Any]], raw: Images, scaling: str, name: str) -> list[Array]:
    arrays = [np.asarray(part, dtype=np.float64) for part in parts]
    if not all(np.isfinite(part).all() for part in arrays):
        raise DatasetError(f"{name} has pixels that are not finite; leave these images out")
    if scaling == "none":
        return arrays
    if scaling == "unit":
        top = float(np.iinfo(raw.images.dtype).max) if raw.images.dtype.kind in "ui" else float(np.max(raw.images))
        return [part / (top or 1.0) for part in arrays]
    if scaling == "standard":
        mean, deviation = arrays[0].mean(), arrays[0].std()
        if deviation == 0:
            raise DatasetError(f"all pixels of {name} are equal; scaling='standard' divides by their standard deviation")
        return [(part - mean) / deviation for part in arrays]
    return [_on_sphere(part, name) for part in arrays]


def _on_sphere(images: Array, name: str) -> Array:
    """Every image with mean square 1, that is |x|^2 = n_0."""
    size = np.sqrt(np.mean(images.reshape(len(images), -1) ** 2, axis=1)) if images.size else np.ones(len(images))
    if (size == 0).any():
        raise DatasetError(f"an image of {name} is black, and scaling='sphere' divides by its norm; take 'standard' or 'unit'")
    return images / size.reshape(-1, *(1,) * (images.ndim - 1))


def _targets(labels: NDArray[np.int64], kept: tuple[int, ...], kind: str) -> Array:
    columns = (labels[:, None] == np.array(kept)[None, :]).astype(np.float64)
    if kind == "one-hot":
        return columns
    return columns - 1 / len(kept) if kind == "centred" else columns[:, 1] - columns[:, 0]
