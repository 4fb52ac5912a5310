"""Kernels and raw inputs from numbers, files and data sets: values, and every refusal by name and place."""

from __future__ import annotations

import numpy as np
import pytest

from symtensor.derivation.inputs import KernelError, gram, load_inputs, load_kernel, validate_kernel
from symtensor.derivation.readers import InputError, read_matrix

K = np.array([[2.0, 0.5], [0.5, 1.0]])


def write(path, text):
    path.write_text(text)
    return str(path)


def test_a_number_is_one_input():
    inputs = load_kernel(" 2.5 ")
    assert inputs.kernel.tolist() == [[2.5]] and inputs.count == 1 and inputs.raw is None
    assert "2.5" in inputs.provenance


@pytest.mark.parametrize(
    "text",
    [
        "2,0.5\n0.5,1\n",
        "a,b\n2,0.5\n0.5,1\n",
        "2;0.5\r\n0.5;1\r\n",
        "# comment\n\n 2 0.5  # first\n 0.5 1\n",
        "2\t0.5\n0.5\t1\n",
        "\ufeff2, 0.5\n0.5, 1e0\n",
        '"a";"b"\n2;0.5\n0.5;1',
    ],
)
def test_csv_dialects(tmp_path, text):
    assert np.array_equal(load_kernel(write(tmp_path / "k.csv", text)).kernel, K)


def test_npy_of_any_real_type(tmp_path):
    for dtype in (np.float64, np.float32):
        np.save(tmp_path / "k.npy", K.astype(dtype))
        assert np.array_equal(load_kernel(str(tmp_path / "k.npy")).kernel, K)
    np.save(tmp_path / "i.npy", np.array([[2, 1], [1, 2]]))
    assert load_kernel(str(tmp_path / "i.npy")).kernel.dtype == np.float64
    np.save(tmp_path / "scalar.npy", np.float64(3.0))
    assert load_kernel(str(tmp_path / "scalar.npy")).kernel.tolist() == [[3.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,0.5\n0.5,x\n", "line 2, column 2: 'x' is not a number"),
        ("1,0.5\n0.5,nan\n", "line 2, column 2: 'nan' is not a finite number"),
        ("1,0.5\n0.5,inf\n", "line 2, column 2: 'inf' is not a finite number"),
        ("1;0,5\n0,5;1\n", "line 1, column 2: '0,5' has a decimal comma"),
        ("1,1+2j\n1,1\n", "line 1, column 2: '1+2j' is complex"),
        ("1,2j\n1,1\n", "line 1, column 2: '2j' is complex"),
        ("1,\n1,1\n", "line 1, column 2: empty field"),
        ("1,2\n3\n", "line 2: 1 fields, but the rows before have 2"),
        ("1_0,2\n3,4\n", "'1_0' is not a number"),
        ("", "holds no numbers"),
        ("a,b\n", "holds no numbers"),
        ("1,2,3\n4,5,6\n", "a square matrix P x P is required, got shape (2, 3)"),
        ("1,0.5\n0.4,1\n", "not symmetric: entry (1, 2) is 0.5, entry (2, 1) is 0.4"),
        ("1,2\n2,1\n", "not positive semidefinite: its smallest eigenvalue is -1"),
        ("1,0\n0,-2\n", "negative variance -2 of input 2"),
    ],
)
def test_refusals_of_csv_kernels_name_the_place(tmp_path, text, message):
    with pytest.raises(InputError) as error:
        load_kernel(write(tmp_path / "k.csv", text))
    assert message in str(error.value)
    assert "k.csv" in str(error.value)


def test_refusals_of_npy_files(tmp_path):
    cases = {
        "object": (np.array([[1, "x"], [None, 2]], dtype=object), "holds Python objects"),
        "complex": (np.eye(2, dtype=complex), "holds complex numbers"),
        "text": (np.array([["1", "2"], ["3", "4"]]), "is not numeric"),
        "cube": (np.ones((2, 2, 2)), "has shape (2, 2, 2); a matrix with two axes is required"),
        "vector": (np.ones(3), "has shape (3,)"),
        "empty": (np.ones((0, 3)), "holds no numbers"),
        "nan": (np.array([[1.0, 0], [np.nan, 1]]), "the entry at row 2, column 1 is NaN"),
        "infinite": (np.array([[np.inf, np.nan], [0, 1]]), "row 1, column 1 is infinite (2 such entries)"),
    }
    for name, (values, message) in cases.items():
        np.save(tmp_path / f"{name}.npy", values, allow_pickle=True)
        with pytest.raises(InputError) as error:
            load_kernel(str(tmp_path / f"{name}.npy"))
        assert message in str(error.value), name
    with pytest.raises(InputError, match=r"it is not a \.npy file"):
        load_kernel(write(tmp_path / "fake.npy", "1,2"))
    np.savez(tmp_path / "archive", K)
    (tmp_path / "archive.npz").rename(tmp_path / "archive.npy")
    with pytest.raises(InputError, match="is an archive"):
        load_kernel(str(tmp_path / "archive.npy"))


def test_nothing_is_unpickled(tmp_path):
    marker = tmp_path / "executed"

    class Bomb:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    np.save(tmp_path / "bomb.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        load_kernel(str(tmp_path / "bomb.npy"))
    assert not marker.exists()


def test_refusals_before_a_file_is_read(tmp_path):
    with pytest.raises(InputError, match=r"the kernel: there is no file '.*none\.csv'"):
        load_kernel(str(tmp_path / "none.csv"))
    with pytest.raises(InputError, match=r"must be a number or a \.csv or \.npy file, got 'two'"):
        load_kernel("two")
    with pytest.raises(InputError, match=r"must be a \.csv or \.npy file"):
        load_kernel(write(tmp_path / "k.txt", "1"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        load_kernel(str(tmp_path / "folder.csv"))
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not a text file"):
        load_kernel(str(tmp_path / "binary.csv"))
    for text, message in (("nan", "is NaN"), ("inf", "is infinite"), ("-1", "negative variance -1")):
        with pytest.raises(InputError, match=message):
            load_kernel(text)


def test_singular_and_zero_kernels_are_fine_and_become_exactly_symmetric():
    assert validate_kernel(np.ones((3, 3))).tolist() == np.ones((3, 3)).tolist()
    assert validate_kernel(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]
    nearly = np.array([[1.0, 0.3 + 1e-16], [0.3, 1.0]])
    assert np.array_equal(validate_kernel(nearly), validate_kernel(nearly).T)


def test_a_slightly_negative_eigenvalue_is_reported_not_repaired():
    with pytest.raises(KernelError, match=r"smallest eigenvalue is -1e-06"):
        validate_kernel(np.array([[1.0, 1.000001], [1.000001, 1.0]]))


@pytest.mark.parametrize("value", [np.eye(2, dtype=complex), np.array([["a"]]), np.eye(2, dtype=object)])
def test_kernels_that_are_not_real_are_refused(value):
    with pytest.raises(KernelError, match="real numbers are required"):
        validate_kernel(value)


def test_raw_inputs_give_their_scaled_gram_matrix(tmp_path):
    x = np.random.default_rng(0).standard_normal((4, 7))
    np.save(tmp_path / "x.npy", x)
    inputs = load_inputs(str(tmp_path / "x.npy"), n_inputs=3, scale=2.5)
    assert np.allclose(inputs.kernel, 2.5 * x[:3] @ x[:3].T / 7, rtol=1e-14)
    assert inputs.raw is not None and np.array_equal(inputs.raw, x[:3])
    assert inputs.labels == ("row 1", "row 2", "row 3")
    assert "x.npy (4 x 7), first 3 rows; K^0 = 2.5 x x^T / 7" in inputs.provenance
    assert load_inputs(str(tmp_path / "x.npy")).count == 4


def test_equal_inputs_have_bitwise_equal_rows():
    row = np.random.default_rng(1).standard_normal(61)
    x = np.array([row, np.roll(row, 1), row, row])
    kernel = gram(x, 0.3)
    assert np.array_equal(kernel[0], kernel[2]) and np.array_equal(kernel[0], kernel[3])
    assert np.array_equal(kernel, kernel.T)
    assert kernel[0, 0] == kernel[0, 2] == kernel[2, 3]


def test_digits_are_real_images_in_their_own_order():
    inputs = load_inputs("digits", n_inputs=3)
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels = bunch.data[:3] / 16
    assert np.allclose(inputs.kernel, pixels @ pixels.T / 64, rtol=1e-14)
    assert inputs.labels == ("digit 0 (row 1)", "digit 1 (row 2)", "digit 2 (row 3)")
    assert load_inputs("digits").count == 2
    assert inputs.smallest_eigenvalue > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits", 1798), "1798 inputs were asked for, but 'digits' has only 1797"),
        (("digits", 0), "must be at least 1, got 0"),
        (("digits", 2, 0.0), "must be a positive finite number, got 0.0"),
        (("digits", 2, float("nan")), "must be a positive finite number"),
        (("digit",), "must be a .csv or .npy file or one of the data sets digits; got 'digit'"),
        (("none.npy",), "the inputs: there is no file"),
    ],
)
def test_refusals_of_raw_inputs(arguments, message):
    with pytest.raises(InputError) as error:
        load_inputs(*arguments)
    assert message in str(error.value)


def test_unreadable_file(tmp_path, monkeypatch):
    path = tmp_path / "k.csv"
    path.write_text("1")

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "read_text", refuse)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_matrix(path, "the kernel")
