"""The command: options, a user's model, what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from derivations.weak_correlations import DERIVATION
from derivations.weak_correlations.measure import family_of, measured_contractions, numbers_of, training_data
from symtensor.cli import main
from symtensor.derivation.settings import OptionError, Settings

SMALL = ["--widths", "16,32,64", "--seeds", "4", "--steps", "6", "--sizes", "12,16,23,33", "--samples", "100", "--alphas", "0"]


def settings(**values: object) -> Settings:
    return Settings.defaults(DERIVATION.options, **values)


@pytest.mark.parametrize("options", [["--widths", "64,x"], ["--widths", "64,64"], ["--model", "nowhere"], ["--model", "no_such:fn"],
                                     ["--activation", "relu"], ["--samples", "5"]])  # fmt: skip
def test_bad_options_name_the_option(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["run", "weak-correlations", *options, "--out", str(tmp_path / "out")]) == 2
    assert options[0] in capsys.readouterr().err


def test_a_model_that_gives_no_pair_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_a_model.py").write_text("def family(n):\n    return n\n")
    monkeypatch.chdir(tmp_path)
    _, family = family_of(settings(model="half_a_model:family"), 4)
    with pytest.raises(OptionError, match="apply, init"):
        family(8)


def test_numbers_and_data() -> None:
    assert numbers_of("1, 2", "--x") == (1, 2)
    data = training_data(settings(train=6, test=4))
    assert data.inputs.shape == (6, 64) and set(np.unique(data.targets)) <= {-1.0, 1.0}


def test_measured_contractions_of_the_linear_layer_are_exact() -> None:
    """C_{0,2} = q f / n and C_{0,3} = 0 for f = v.w x / sqrt(n)."""
    jax = pytest.importorskip("jax")

    def family(n: int):
        return lambda t, x: t[0] @ t[1] * x[0] / n**0.5, lambda key: jax.random.normal(key, (2, n))

    pairs = ((0, 0), (0, 2), (0, 3))
    found = measured_contractions(family, np.array([1.5]), [5], 3, 0, lambda done, total: None, pairs)
    np.testing.assert_allclose(found["C_0_2"], 1.5**2 * found["C_0_0"] / 5, rtol=1e-12)
    assert np.max(found["C_0_3"]) < 1e-14


@pytest.mark.slow
def test_a_small_run_leaves_a_report(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["run", "weak-correlations", *SMALL, "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert all(summary["checks"].values())
    assert set(summary["values"]["correlations"]) >= {"C_0_2", "C_1_1", "C_2_0"}
    slopes = summary["values"]["deviation"]
    assert slopes["alpha 0 mse"]["slope"] == pytest.approx(2 * slopes["alpha 0 rms"]["slope"], rel=1e-9)
    assert "Condition on the activation" in (out / "report.html").read_text()
