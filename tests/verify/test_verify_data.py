"""A user's own data: tables from files, arrays in three shapes, everything wrong named with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symtensor.verify import DataError, DataWarning, SizesError, StructuredGridWarning, VerificationError, read_csv, verify_samples

N = (33, 67, 131, 262, 518, 1043)
RNG = np.random.default_rng(5)
DATA = {n: np.sqrt(n) * np.exp(0.2 * RNG.standard_normal(300)) for n in N}


def write(folder: Path, text: str) -> Path:
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "n,value\n33,1.5\n64,2\n",
        "value;N\n1.5;33\n2;64\n",
        "\ufeffn\tvalue\n33\t1.5\n\n# a remark\n64\t2e0\n",
        "33,1.5\n64,2\n",
        'n,value\r\n"33","1.5"\r\n64.0, 2\r\n',
    ],
)
def test_tables_of_every_usual_form(tmp_path: Path, text: str) -> None:
    table = read_csv(write(tmp_path, text))
    assert table.sizes.tolist() == [33, 64] and table.values.tolist() == [1.5, 2.0]


def test_other_columns_are_ignored_by_name_and_columns_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, "width,seed,n,value\n40,1,33,1.5\n41,2,64,2\n")
    with pytest.warns(DataWarning, match="'width', 'seed' are ignored"):
        assert read_csv(path).sizes.tolist() == [33, 64]
    with pytest.warns(DataWarning):
        assert read_csv(path, size="width").sizes.tolist() == [40, 41]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n,value\n33,1.5\nx,2\n", "line 3: size 'x' is not an integer"),
        ("n,value\n33.5,1.5\n", "line 2: size '33.5' is not an integer"),
        ("n,value\n0,1.5\n", "line 2: size 0 is not possible"),
        ("n,value\n-4,1.5\n", "line 2: size -4 is not possible"),
        ("n,value\n33,\n", "line 2: value '' is not a number"),
        ("n,value\n33,nan\n", "line 2: value 'nan' is not finite"),
        ("n,value\n33,inf\n", "line 2: value 'inf' is not finite"),
        ("n,value\n33,-1\n", "line 2: value -1 is negative"),
        ("n,value\n# note\n33,1,2\n", "line 3: 3 cells where 2 are expected"),
        ("n,value\n33\n64,x\n", "line 2: 1 cells where 2 are expected; line 3: value 'x'"),
        ("size,norm\n33,1\n", "no column 'n' and 'value'"),
        ("n,norm\n33,1\n", "no column 'value'"),
        ("n,value\n", "a header and no rows"),
        ("", "is empty"),
        ("n,value\n" + "x,1\n" * 8, "and 3 more"),
    ],
)
def test_bad_rows_are_named_by_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        read_csv(write(tmp_path, text))
    assert message in str(error.value)


def test_missing_and_binary_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        read_csv(tmp_path / "absent.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(DataError, match="cannot be read"):
        read_csv(tmp_path / "b.csv")


def test_three_shapes_of_the_same_data_give_the_same_result() -> None:
    mapping = verify_samples(DATA, claim="sqrt(n)")
    grouped = verify_samples(list(N), np.array([DATA[n] for n in N]), "sqrt(n)")
    sizes = np.repeat(N, 300)
    order = np.random.default_rng(0).permutation(sizes.size)
    pairs = verify_samples(sizes[order], np.concatenate([DATA[n] for n in N])[order], "sqrt(n)")
    assert mapping == grouped == pairs and mapping.verdict == "consistent"


@pytest.mark.parametrize(
    ("sizes", "values", "message"),
    [
        (list(N), [[1.0]] * 5, "6 sizes and 5 values"),
        ({**DATA, 33: [1.0, -2.0]}, None, "value 1 at n = 33 is -2"),
        ({**DATA, 33: [1.0, float("nan")]}, None, "value 1 at n = 33 is nan"),
        ({**DATA, 33: []}, None, "shape"),
        ({**DATA, 33: ["a"]}, None, "not real numbers"),
        (DATA, [1.0], "values has no meaning"),
        (list(N), None, "values is missing"),
        ([33, 33, 64, 131], [[1.0]] * 4, "given twice"),
        (np.ones((2, 2)), [1.0, 2.0], "2 dimensions"),
    ],
)
def test_bad_data_are_named(sizes: Any, values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        verify_samples(sizes, values, "sqrt(n)")


def test_sizes_of_data_are_checked_too() -> None:
    with pytest.raises(SizesError, match="3 sizes given"):
        verify_samples({n: DATA[n] for n in N[:3]}, claim="sqrt(n)")
    with pytest.raises(SizesError, match="size 0"):
        verify_samples({**DATA, 0: DATA[33]}, claim="sqrt(n)")
    with pytest.raises(VerificationError, match="no claim"):
        verify_samples(DATA)
    with pytest.raises(VerificationError, match="constant data"):
        verify_samples({n: np.full(50, float(n)) for n in N}, claim="n")


def test_powers_of_two_only_are_warned_about_and_reported() -> None:
    grid = {2**k: np.exp(RNG.standard_normal(300)) for k in range(5, 11)}
    with pytest.warns(StructuredGridWarning, match="powers of two"):
        result = verify_samples(grid, claim="1")
    assert "powers of two" in result.text() and "multiples of 32" in result.text()


def test_uneven_samples_are_warned_about() -> None:
    with pytest.warns(DataWarning, match="n = 33 has 30 samples"):
        result = verify_samples({**DATA, 33: DATA[33][:30]}, claim="sqrt(n)")
    assert [entry.level for entry in result.refused] == [0.9] and result.samples[:2] == (30, 300)
