"""Which format a file or folder has, and its images and labels."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.datasets.cifar import concatenated, read_cifar_binary, read_cifar_pickle
from symtensor.datasets.errors import DatasetError
from symtensor.datasets.idx import read_idx

__all__ = ["Images", "read_images"]

#: folders in which the usual tools unpack these sets
SUBFOLDERS = (
    "", "raw", "MNIST/raw", "FashionMNIST/raw", "cifar-10-batches-py", "cifar-10-batches-bin", "cifar-100-python",
    "cifar-100-binary",
)  # fmt: skip
_PAIRS = (
    ("x_train", "y_train", "x_test", "y_test"),
    ("train_images", "train_labels", "test_images", "test_labels"),
    ("images", "labels", "test_images", "test_labels"),
    ("data", "target", "test_data", "test_target"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """Images (N, rows, columns) or (N, rows, columns, 3) with labels (N,), and the test set where the files have one.

    `kind` names the format, `source` the file or folder.
    """

    images: NDArray[Any]
    labels: NDArray[np.int64]
    test_images: NDArray[Any] | None
    test_labels: NDArray[np.int64] | None
    kind: str
    source: str


def read_images(path: Path | str) -> Images:
    """Images and labels of a folder (idx files, CIFAR batches), of one CIFAR batch, or of an .npz archive.

    A folder is searched itself and in the subfolders that the usual tools make (MNIST/raw, cifar-10-batches-py, ..).

    Raises
    ------
    DatasetError
        Nothing there, no known format, two data sets in one folder, a file missing, truncated or of another format, numbers of
        images and labels that differ.
    """
    place = Path(path).expanduser()
    if place.is_file():
        return _from_file(place)
    if not place.is_dir():
        raise DatasetError(
            f"{str(path)!r} does not exist; give a folder with the files of MNIST, FashionMNIST or CIFAR, or an .npz file. "
            "Nothing is downloaded; the set that needs no files is 'digits'"
        )
    found = [(folder, kind) for folder in (place / name for name in SUBFOLDERS) if folder.is_dir() and (kind := _kind(folder))]
    if not found:
        seen = ", ".join(sorted(entry.name for entry in place.iterdir())[:8]) or "nothing"
        raise DatasetError(
            f"{str(place)!r} holds no known data set (it has {seen}); required: idx files such as train-images-idx3-ubyte, CIFAR "
            "batches such as data_batch_1 or data_batch_1.bin (unpack archives first), or give an .npz file"
        )
    if len(found) > 1:
        named = " and ".join(f"{kind} in {folder.relative_to(place).as_posix()!r}" for folder, kind in found)
        raise DatasetError(f"{str(place)!r} holds {named}; give one of these folders")
    folder, kind = found[0]
    return _READERS[kind](folder)


def _kind(folder: Path) -> str:
    names = {entry.name for entry in folder.iterdir()}
    if any(_is_idx(name, "images", 3) for name in names):
        return "idx"
    if any(name.startswith("data_batch_") and name.endswith(".bin") for name in names) or {"train.bin", "test.bin"} <= names:
        return "binary batches"
    if any(name.startswith("data_batch_") for name in names) or {"train", "test", "meta"} <= names:
        return "pickled batches"
    return ""


def _is_idx(name: str, what: str, dimensions: int) -> bool:
    plain = name.removesuffix(".gz").replace(".", "-")
    return plain in (f"train-{what}-idx{dimensions}-ubyte", f"t10k-{what}-idx{dimensions}-ubyte")


def _read_idx_folder(folder: Path) -> Images:
    def pair(part: str, required: bool) -> tuple[NDArray[Any] | None, NDArray[np.int64] | None]:
        files = [_idx_file(folder, part, what, dimensions) for what, dimensions in (("images", 3), ("labels", 1))]
        if not any(files) and not required:
            return None, None
        for file, what in zip(files, ("images", "labels")):
            if file is None:
                raise DatasetError(f"{str(folder)!r} has no file of the {part} {what}, such as {part}-{what}-idx*-ubyte[.gz]")
        images, labels = read_idx(files[0], 3), read_idx(files[1], 1)  # type: ignore[arg-type]
        return images, _matched(f"{files[0]} and {files[1]}", images, labels)

    images, labels = pair("train", True)
    test_images, test_labels = pair("t10k", False)
    assert images is not None and labels is not None
    return Images(images, labels, test_images, test_labels, "idx", str(folder))


def _idx_file(folder: Path, part: str, what: str, dimensions: int) -> Path | None:
    found = sorted(entry for entry in folder.iterdir() if entry.name.startswith(part) and _is_idx(entry.name, what, dimensions))
    return found[0] if found else None


def _read_batches(folder: Path, kind: str, suffix: str) -> Images:
    whole = folder / f"train{suffix}"
    if whole.is_file():  # CIFAR-100
        training = [whole]
    else:
        names = [entry for entry in folder.iterdir() if entry.name.startswith("data_batch_") and entry.suffix == suffix]
        training = sorted(names, key=lambda entry: (len(entry.name), entry.name))
    fine = 2 if whole.is_file() else 1

    def read(file: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return read_cifar_binary(file, fine) if suffix else read_cifar_pickle(file)

    images, labels = concatenated([read(file) for file in training])
    tests = [file for file in (folder / f"test_batch{suffix}", folder / f"test{suffix}") if file.is_file()]
    test_images, test_labels = read(tests[0]) if tests else (None, None)
    return Images(images, labels, test_images, test_labels, kind, str(folder))


def _from_file(file: Path) -> Images:
    with file.open("rb") as stream:
        start = stream.read(4)
    if file.name.endswith((".tar", ".tar.gz", ".tgz", ".zip")):
        raise DatasetError(f"{str(file)!r} is an archive; unpack it and give the folder")
    if start[:2] == b"PK":
        return _read_npz(file)
    if start[:2] == b"\0\0" or _is_idx(file.name, "images", 3) or _is_idx(file.name, "labels", 1):
        raise DatasetError(f"{str(file)!r} is an idx file of images or labels alone; give the folder with both")
    if file.suffix == ".npz":
        raise DatasetError(f"{str(file)!r} is no .npz archive: it starts with {start.hex(' ') or 'nothing'}, not with 50 4b")
    images, labels = read_cifar_binary(file) if file.suffix == ".bin" else read_cifar_pickle(file)
    return Images(images, labels, None, None, "binary batch" if file.suffix == ".bin" else "pickled batch", str(file))


def _read_npz(file: Path) -> Images:
    try:
        with np.load(file, allow_pickle=False) as archive:
            names = set(archive.files)
            chosen = next((pair for pair in _PAIRS if set(pair[:2]) <= names), None)
            if chosen is None:
                expected = "; or ".join(", ".join(pair[:2]) for pair in _PAIRS)
                raise DatasetError(f"{str(file)!r} has the arrays {', '.join(sorted(names)) or 'none'}; required: {expected}")
            tested = set(chosen[2:]) <= names
            arrays = [archive[name] for name in (chosen if tested else chosen[:2])]
    except DatasetError:
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DatasetError(f"{str(file)!r} is damaged, truncated, or holds pickled objects ({error})") from error
    for name, images in zip(chosen[::2], arrays[::2]):
        if images.ndim not in (2, 3, 4) or images.dtype.kind not in "uif":
            raise DatasetError(
                f"{str(file)!r}: {name} has shape {images.shape} and type {images.dtype}; required: numbers (N, rows, columns[, 3])"
            )
    where = f"{file}"
    test_images = arrays[2] if tested else None
    test_labels = _matched(f"{where}, test set", arrays[2], arrays[3]) if tested else None
    return Images(arrays[0], _matched(where, arrays[0], arrays[1]), test_images, test_labels, "npz", str(file))


def _matched(where: str, images: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.int64]:
    """The labels, if there is one non-negative integer for every image."""
    flat = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if flat.ndim != 1 or len(flat) != len(images):
        raise DatasetError(
            f"{where}: images of shape {images.shape} and labels of shape {labels.shape}; one label per image is required"
        )
    if flat.dtype.kind not in "ui" or (flat.size and int(flat.min()) < 0):
        raise DatasetError(f"{where}: labels of type {flat.dtype}; non-negative integers are required")
    return flat.astype(np.int64)


_READERS = {
    "idx": _read_idx_folder,
    "binary batches": lambda folder: _read_batches(folder, "binary batches", ".bin"),
    "pickled batches": lambda folder: _read_batches(folder, "pickled batches", ""),
}
