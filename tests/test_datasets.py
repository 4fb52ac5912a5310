"""Images from files in their usual formats, made here byte by byte, and what happens when they are damaged."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symtensor.datasets import DatasetError, load, read_cifar_binary, read_cifar_pickle, read_idx, read_images

RNG = np.random.default_rng(0)


def idx_bytes(array: np.ndarray, code: int = 8) -> bytes:
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_mnist(folder: Path, pack: bool = False, train: int = 30, test: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """A folder like the one MNIST is unpacked to."""
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = RNG.integers(1, 256, (train + test, 5, 4), dtype=np.uint8), np.arange(train + test, dtype=np.uint8) % 10
    for part, rows in (("train", slice(0, train)), ("t10k", slice(train, None))):
        for name, content in (("images-idx3-ubyte", idx_bytes(images[rows])), ("labels-idx1-ubyte", idx_bytes(labels[rows]))):
            path = folder / f"{part}-{name}{'.gz' if pack else ''}"
            path.write_bytes(gzip.compress(content) if pack else content)
    return images, labels


def cifar_rows(count: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Images (N, 32, 32, 3), the same as rows of planes, labels."""
    images = RNG.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    return images, images.transpose(0, 3, 1, 2).reshape(count, -1).copy(), RNG.integers(0, 10, count).tolist()


def python2_batch(rows: np.ndarray, labels: list[int]) -> bytes:
    """The opcodes that Python 2's cPickle wrote for a CIFAR batch: byte strings, numpy.core.multiarray, protocol 2."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    def integer(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    data = rows.tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n" + b"cnumpy\nndarray\n" + integer(0) + b"\x85" + text(b"b") + b"\x87R("
        + integer(1) + integer(rows.shape[0]) + integer(rows.shape[1]) + b"\x86"
        + b"cnumpy\ndtype\n" + text(b"u1") + integer(0) + integer(1) + b"\x87R("
        + integer(3) + text(b"|") + b"NNN" + integer(-1) + integer(-1) + integer(0) + b"tb"
        + b"\x89" + b"T" + struct.pack("<i", len(data)) + data + b"tb"
    )  # fmt: skip
    entries = text(b"data") + array + text(b"labels") + b"](" + b"".join(map(integer, labels)) + b"e"
    return b"\x80\x02}(" + entries + text(b"batch_label") + text(b"one") + b"u."


# --- idx ---


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    kind=st.sampled_from([(8, ">u1"), (11, ">i2"), (12, ">i4"), (14, ">f8")]),
)
def test_idx_round_trip_and_every_truncation(shape, kind, tmp_path) -> None:
    code, dtype = kind
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    path = tmp_path / "file"
    path.write_bytes(idx_bytes(array, code))
    assert np.array_equal(read_idx(path), array) and read_idx(path).dtype == np.dtype(dtype).newbyteorder("=")
    content = path.read_bytes()
    for cut in {1, 3, 5, len(content) - 1} & set(range(len(content))):
        path.write_bytes(content[:cut])
        with pytest.raises(DatasetError, match=r"truncated|no idx file"):
            read_idx(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(DatasetError, match="too long"):
        read_idx(path)


@pytest.mark.parametrize("pack", [False, True])
def test_mnist_folder(tmp_path: Path, pack: bool) -> None:
    images, labels = write_mnist(tmp_path / "MNIST" / "raw", pack)
    for folder in (tmp_path, tmp_path / "MNIST" / "raw"):
        found = read_images(folder)
        assert found.kind == "idx" and found.test_images is not None
        assert np.array_equal(found.images, images[:30]) and np.array_equal(found.labels, labels[:30])
        assert np.array_equal(found.test_images, images[30:])


def test_what_is_wrong_with_idx_files_is_said(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    images, labels = tmp_path / "train-images-idx3-ubyte", tmp_path / "train-labels-idx1-ubyte"
    good, good_labels = images.read_bytes(), labels.read_bytes()
    for content, text in (
        (good[:-7], "truncated: 609 bytes, its header says 616"),
        (b"<!DOCTYPE html>", "starts with 3c 21 44 4f"),
        (good_labels, "has 1 dimension.*exchanged"),
        (idx_bytes(np.ones((29, 5, 4), np.uint8)), "one label per image"),
        (gzip.compress(good)[:-20], "truncated gzip"),
        (b"", "starts with nothing"),
    ):
        images.write_bytes(content)
        with pytest.raises(DatasetError, match=text):
            read_images(tmp_path)
    images.write_bytes(good)
    labels.unlink()
    with pytest.raises(DatasetError, match="no file of the train labels"):
        read_images(tmp_path)
    with pytest.raises(DatasetError, match="give the folder with both"):
        read_images(images)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    labels.write_bytes(good_labels)
    with pytest.raises(DatasetError, match="no file of the t10k labels"):
        read_images(tmp_path)


# --- CIFAR ---


@pytest.mark.parametrize("writer", ["python 2", 2, 4, 5])
def test_cifar_pickles_of_every_protocol(tmp_path: Path, writer: str | int) -> None:
    images, rows, labels = cifar_rows(4)
    path = tmp_path / "data_batch_1"
    if isinstance(writer, int):
        path.write_bytes(pickle.dumps({b"data": rows, b"labels": labels, b"filenames": [b"a.png"] * 4}, protocol=writer))
    else:
        path.write_bytes(python2_batch(rows, labels))
        real = pickle.loads(path.read_bytes(), encoding="bytes")  # the hand-made opcodes are what Python itself reads
        assert np.array_equal(real[b"data"], rows)
    found, found_labels = read_cifar_pickle(path)
    assert np.array_equal(found, images) and found_labels.tolist() == labels
    assert read_images(path).kind == "pickled batch"
    fortran = pickle.dumps({"data": np.asfortranarray(rows), "labels": labels}, protocol=4)
    path.write_bytes(fortran)
    assert np.array_equal(read_cifar_pickle(path)[0], images)


class Evil:
    """Its pickle would call a function."""

    def __init__(self, function, *arguments) -> None:
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_cannot_run_anything(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "executed"
    path = tmp_path / "data_batch_1"
    calls = ((os.mkdir, (str(mark),)), (eval, (f"open({str(mark)!r}, 'w')",)), (np.save, (str(mark), np.ones(1))))
    for function, arguments in calls:
        content = pickle.dumps({b"data": Evil(function, *arguments), b"labels": [1]}, protocol=protocol)
        path.write_bytes(content)
        with pytest.raises(DatasetError, match="is refused: the pickle calls"):
            read_cifar_pickle(path)
        assert not mark.exists()
    pickle.loads(pickle.dumps(Evil(os.mkdir, str(mark)), protocol=protocol))
    assert mark.exists()  # the same pickle, read by Python, does run


def test_what_is_wrong_with_a_pickle_is_said(tmp_path: Path) -> None:
    path = tmp_path / "data_batch_1"
    _, rows, labels = cifar_rows(3)

    def size(count: int) -> bytes:
        """The shape (count, 3072) as opcodes."""
        return b"J" + struct.pack("<i", count) + b"J" + struct.pack("<i", 3072)

    for content, text in (
        (pickle.dumps({"data": rows, "labels": labels})[:-500], "truncated or damaged"),
        (b"not a pickle", "no pickle"),
        (pickle.dumps([1, 2]), "holds a list"),
        (pickle.dumps({"images": 1}), "has the entries images"),
        (pickle.dumps({"data": rows, "labels": labels[:2]}), "3 images and 2 labels"),
        (pickle.dumps({"data": rows, "labels": [1, 2, 10]}), "label 2 is 10"),
        (pickle.dumps({"data": rows, "labels": ["a", "b", "c"]}), "no list of integers"),
        (pickle.dumps({"data": rows[:, :100], "labels": labels}), r"shape \(3, 100\)"),
        (pickle.dumps({"data": rows.astype(float), "labels": labels}), "type 'f8'"),
        (pickle.dumps({"data": np.array([None] * 3), "labels": labels}), "type 'O8'"),
        (pickle.dumps({"data": [1, 2, 3], "labels": labels}), "'data' is no array"),
        (python2_batch(rows, labels).replace(size(3), size(4)), "has not the 12288 bytes"),
    ):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=text):
            read_cifar_pickle(path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 400), value=st.integers(0, 255))
def test_a_changed_byte_is_an_error_or_changes_nothing_else(place: int, value: int, tmp_path: Path) -> None:
    """Whatever one byte of the header becomes: an array of the right shape, or a DatasetError, and nothing else."""
    rows, labels = np.zeros((2, 3072), np.uint8), [1, 2]
    content = bytearray(python2_batch(rows, labels))
    content[place if place < 200 else len(content) - (place - 199)] = value
    path = tmp_path / "data_batch_1"
    path.write_bytes(bytes(content))
    try:
        images, found = read_cifar_pickle(path)
    except DatasetError:
        return
    assert images.shape == (2, 32, 32, 3) and len(found) == 2


def test_cifar_folders(tmp_path: Path) -> None:
    parts = [cifar_rows(count) for count in (3, 2, 4)]
    python, binary = tmp_path / "cifar-10-batches-py", tmp_path / "cifar-10-batches-bin"
    for folder in (python, binary):
        folder.mkdir()
    for name, (_, rows, labels) in zip(("data_batch_1", "data_batch_2", "test_batch"), parts):
        (python / name).write_bytes(python2_batch(rows, labels))
        record = np.concatenate([np.array(labels, np.uint8)[:, None], rows], axis=1)
        (binary / f"{name}.bin").write_bytes(record.tobytes())
    for folder in (python, binary):
        found = read_images(folder)
        assert np.array_equal(found.images, np.concatenate([parts[0][0], parts[1][0]]))
        assert found.labels.tolist() == parts[0][2] + parts[1][2]
        assert found.test_images is not None and np.array_equal(found.test_images, parts[2][0])
    with pytest.raises(DatasetError, match="pickled batches in 'cifar-10-batches-py' and binary batches in"):
        read_images(tmp_path)
    with pytest.raises(DatasetError, match="multiple of 3073"):
        (binary / "data_batch_1.bin").write_bytes(b"\0" * 3000)
        read_images(binary)
    with pytest.raises(DatasetError, match="label 0 is 11"):
        (binary / "data_batch_1.bin").write_bytes(b"\x0b" + b"\0" * 3072)
        read_images(binary)
    data = load(python, train=2, test=0)
    assert data.inputs.shape == (2, 3072) and data.image_shape == (32, 32, 3)
    hundred = tmp_path / "hundred.bin"
    hundred.write_bytes(bytes([3, 77]) + parts[0][1][0].tobytes())
    images, labels = read_cifar_binary(hundred, labels=2)
    assert labels.tolist() == [77] and np.array_equal(images[0], parts[0][0][0])


# --- npz ---


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "mnist.npz"
    images, labels = RNG.integers(0, 256, (9, 3, 3), dtype=np.uint8), np.arange(9) % 3
    np.savez_compressed(path, x_train=images[:6], y_train=labels[:6], x_test=images[6:], y_test=labels[6:])
    found = read_images(path)
    assert np.array_equal(found.images, images[:6]) and found.test_labels is not None and found.test_labels.tolist() == [0, 1, 2]
    content = path.read_bytes()
    for change, text in (
        (lambda: path.write_bytes(content[: len(content) // 2]), "damaged, truncated"),
        (lambda: path.write_bytes(b"hello"), "no .npz archive"),
        (lambda: np.savez(path, a=images), "has the arrays a; required: x_train"),
        (lambda: np.savez(path, images=images, labels=labels[:4]), "one label per image"),
        (lambda: np.savez(path, images=images, labels=labels + 0.5), "non-negative integers"),
        (lambda: np.savez(path, images=np.array([None] * 9), labels=labels), "pickled objects"),
    ):
        change()
        with pytest.raises(DatasetError, match=text):
            read_images(path)


# --- load ---


def test_digits_are_split_scaled_and_reproducible() -> None:
    data = load("digits", train=300, test=None)
    assert data.inputs.shape == (300, 64) and data.test_inputs.shape == (1497, 64) and data.classes == tuple(range(10))
    np.testing.assert_allclose((data.inputs**2).sum(axis=1), 64)
    assert (data.targets.sum(axis=1) == 1).all() and (data.targets.argmax(axis=1) == data.labels).all()
    again = load("digits", train=300, test=None)
    assert np.array_equal(again.inputs, data.inputs)
    assert not np.array_equal(load("digits", train=300, seed=1).inputs, data.inputs)
    together = np.concatenate([data.inputs, data.test_inputs])
    from sklearn.datasets import load_digits

    original = load_digits().data
    original = original / np.sqrt((original**2).mean(axis=1, keepdims=True))
    assert np.allclose(np.sort(together.sum(axis=1)), np.sort(original.sum(axis=1)))  # every image once


def test_scalings_and_targets() -> None:
    options = {"train": 50, "test": 20, "classes": (1, 7)}
    standard = load(scaling="standard", **options).inputs
    assert abs(standard.mean()) < 1e-12 and abs(standard.std() - 1) < 1e-12
    raw = load(scaling="none", flatten=False, **options)
    assert raw.inputs.shape == (50, 8, 8) and raw.inputs.max() == 16
    np.testing.assert_allclose(load(scaling="unit", **options).inputs, raw.inputs.reshape(50, 64) / 16)
    sign = load(targets="sign", **options)
    assert (sign.targets == np.where(sign.labels == 7, 1, -1)).all()
    centred = load(targets="centred", **options)
    assert np.allclose(centred.targets.sum(axis=1), 0) and np.allclose(np.abs(centred.targets), 0.5)


def test_test_images_come_from_the_test_files(tmp_path: Path) -> None:
    images, _ = write_mnist(tmp_path)
    data = load(tmp_path, train=None, test=None, scaling="none")
    assert np.array_equal(np.sort(data.test_inputs.sum(axis=1)), np.sort(images[30:].astype(float).sum(axis=(1, 2))))
    assert load(tmp_path, train=4, test=0).test_inputs.shape == (0, 20)


BAD = [
    ({"source": "mnist"}, "needs local files .nothing is downloaded.: give a folder with train-images"),
    ({"source": "no/such/place"}, "does not exist.*'digits'"),
    ({"source": ""}, "source is empty"),
    ({"train": 0}, "ask for 1 to 1797"),
    ({"train": 5000}, "has 1797 training images"),
    ({"train": 1700, "test": 200}, "only 97 test images"),
    ({"train": 2.5}, "must be an integer"),
    ({"classes": (1, 12)}, "class 12 is not in digits; its classes are 0, 1"),
    ({"classes": (1, 1)}, "distinct"),
    ({"targets": "sign"}, "needs two classes, there are 10"),
    ({"targets": "labels"}, "'one-hot', 'centred', 'sign'"),
    ({"scaling": "max"}, "'sphere', 'standard'"),
]


@pytest.mark.parametrize(("options", "text"), BAD, ids=[text for _, text in BAD])
def test_bad_requests_are_named(options: dict, text: str) -> None:
    with pytest.raises(DatasetError, match=text):
        load(**options)


def test_folders_without_data_and_archives(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DatasetError, match=r"no known data set \(it has notes.txt\)"):
        read_images(tmp_path)
    archive = tmp_path / "cifar-10-python.tar.gz"
    archive.write_bytes(b"\x1f\x8b123")
    with pytest.raises(DatasetError, match="unpack it"):
        read_images(archive)
    write_mnist(tmp_path)
    black = tmp_path / "train-images-idx3-ubyte"
    black.write_bytes(idx_bytes(np.zeros((30, 5, 4), np.uint8)))
    with pytest.raises(DatasetError, match=r"is black.*'standard'"):
        load(tmp_path, train=3, test=0)
