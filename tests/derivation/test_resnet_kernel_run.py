"""The command end to end: the machine contract, the power of the comparison, resuming, and bad input."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from symtensor.cli import main
from symtensor.derivation.results import read_netcdf


def run(out: Path, *options: object) -> dict:
    """Run the command in this process; the summary."""
    assert main(["run", "resnet-kernel", *map(str, options), "--out", str(out)]) == 0
    return json.loads((out / "summary.json").read_text())


def array(value: list) -> np.ndarray:
    """Nested lists with null for what is not known."""
    return np.array(value, dtype=object).astype(float)


@pytest.fixture(scope="module")
def theory_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """The contract's example at small depth."""
    out = tmp_path_factory.mktemp("theory") / "out"
    options = "--activation tanh --kernel 2.0 --c-w 2 --c-b 0 --alpha 1 --dt 0.0025 --depth 40 --width 64 --samples 0 --seed 0"
    return out, run(out, *options.split())


@pytest.fixture(scope="module")
def simulated_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """Two real images, few layers, large dt, small n: standard errors small enough to reject the closure."""
    out = tmp_path_factory.mktemp("simulated") / "out"
    return out, run(out, *"--depth 4 --dt 0.5 --width 16 --samples 80000 --input-scale 8".split())


def test_machine_contract(theory_run: tuple[Path, dict]) -> None:
    out, summary = theory_run
    assert {"parameters", "theory", "theory_ode", "simulation", "z", "quadrature", "warnings"} <= set(summary)
    theory = summary["theory"]
    assert np.shape(theory["t"]) == (41,)
    assert np.shape(theory["K0"]) == np.shape(theory["K1_kernel_only"]) == np.shape(theory["U1_model"]) == (41, 1, 1)
    assert np.shape(theory["V4_kernel_only"]) == (41, 1, 1, 1, 1)
    assert theory["K0"][0] == [[2.0]]
    assert theory["V4_kernel_only"][0] == [[[[8.0]]]]
    assert theory["U1_exact"][0] == [[0.0]]
    assert theory["U1_exact"][1] == [[None]]
    assert set(summary["quadrature"]) >= {"rule", "error"}
    assert summary["quadrature"]["error"] <= 1e-10
    assert np.shape(summary["theory_ode"]["K0"]) == (41, 1, 1)
    assert summary["simulation"] is None
    assert summary["parameters"]["activation"] == "tanh"
    assert summary["parameters"]["depth"] == 40
    for name in ("report.html", "results.nc", "resnet_kernel.py", "parameters.json"):
        assert (out / name).stat().st_size > 0


def test_labelled_file_holds_the_same_numbers(theory_run: tuple[Path, dict]) -> None:
    out, summary = theory_run
    variables, _ = read_netcdf(out / "results.nc")
    np.testing.assert_array_equal(variables["theory_V4_kernel_only"].values, summary["theory"]["V4_kernel_only"])
    assert variables["theory_V4_kernel_only"].axes == ("depth", "a", "b", "c", "d")


def test_generated_module_stands_alone(theory_run: tuple[Path, dict]) -> None:
    """The module that was written gives the numbers of the summary, and passes its own check."""
    import jax.numpy as jnp

    out, summary = theory_run
    source = (out / "resnet_kernel.py").read_text()
    assert "symtensor" not in source.replace("symtensor/", "")
    module = runpy.run_path(str(out / "resnet_kernel.py"))
    K0 = jnp.array([[2.0]])
    result = module["hierarchy"](K0, module["V4_initial"](K0), jnp.zeros((1, 1)), 2.0, 0.0, 1.0, 0.0025, depth=40)
    np.testing.assert_allclose(result.V4, summary["theory"]["V4_kernel_only"], rtol=1e-13)
    assert module["self_check"]().passed


def test_report_is_offline(simulated_run: tuple[Path, dict]) -> None:
    text = (simulated_run[0] / "report.html").read_text()
    assert "<math" in text
    assert "<svg" in text
    for outside in ("http://", "https://"):
        links = [part.split('"')[0] for part in text.split(outside)[1:]]
        assert all("w3.org" in link for link in links), links
    assert "<script" not in text


def judge(summary: dict) -> None:
    """Standard errors small enough (V4 1 %, K1 5 %), exact U1 accepted, the model's U1 and the closure's K1 rejected."""
    simulation, theory, z = summary["simulation"], summary["theory"], summary["z"]
    inputs = range(len(theory["K0"][0]))
    estimate = {name: {key: array(value) for key, value in simulation[name].items()} for name in ("V4", "K1", "U1")}
    relative = estimate["V4"]["se"] / np.abs(estimate["V4"]["mean"])
    assert max(relative[1:, a, b, a, b].max() for a in inputs for b in inputs) <= 0.01
    assert estimate["K1"]["se"][-1].max() <= 0.05 * np.abs(estimate["K1"]["mean"][-1]).max()
    assert np.max(np.abs(array(z["U1_exact"])[0])) < 4
    assert np.min(np.abs(array(z["U1_model"])[0])) > 6
    assert np.min(np.abs(array(z["K1"])[-1])) > 6


def test_comparison_finds_what_the_paper_found(simulated_run: tuple[Path, dict]) -> None:
    judge(simulated_run[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        "--kernel 2.0 --dt 0.5 --depth 4 --width 16 --samples 60000",
        "--n-inputs 3 --input-scale 8 --dt 0.5 --depth 4 --width 16 --samples 250000",
        "--n-inputs 4 --input-scale 8 --dt 0.5 --depth 4 --width 16 --samples 250000",
    ],
)
def test_comparison_for_other_numbers_of_inputs(options: str, tmp_path: Path) -> None:
    judge(run(tmp_path / "out", *options.split()))


def test_residual_is_source_plus_transport(simulated_run: tuple[Path, dict]) -> None:
    """K_1' = alpha^2 K_1 + dt C_W S_1 holds exactly at finite width, so the simulated means obey it within errors."""
    _, summary = simulated_run
    simulation = summary["simulation"]
    K1, S1 = array(simulation["K1"]["mean"]), array(simulation["S1"]["mean"])
    error = np.hypot(array(simulation["K1"]["se"])[1:], array(simulation["K1"]["se"])[:-1])
    expected = K1[1:-1] + 0.5 * 2.0 * S1[1:-1]  # depth 0 is reported without control variates
    assert np.max(np.abs(K1[2:] - expected) / error[1:]) < 4


def test_more_samples_extend_and_changed_parameters_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    options = "--kernel 1.0 --depth 2 --width 8".split()
    run(tmp_path / "a", *options, "--samples", 3000)
    extended = run(tmp_path / "a", *options, "--samples", 9000)
    fresh = run(tmp_path / "b", *options, "--samples", 9000)
    assert extended["simulation"] == fresh["simulation"]
    assert main(["run", "resnet-kernel", *options, "--samples", "9000", "--seed", "1", "--out", str(tmp_path / "a")]) == 2
    assert "seed (0 there, 1 now)" in capsys.readouterr().err
    resumed = run(tmp_path / "a", "--resume")
    assert resumed["simulation"] == fresh["simulation"]


BAD = [
    ("--activation tahn", "tanh"),
    ("--activation __import__('os').getcwd()", "__import__"),
    ("--activation x.real", "attribute"),
    ("--activation exp(x^2) --kernel 2", "exp(x**2)"),
    ("--kernel -1", "negative"),
    ("--kernel nan", "finite"),
    ("--kernel missing.npy", "missing.npy"),
    ("--samples 1 --kernel 1", "standard error"),
    ("--samples 2 --kernel 1", "standard error"),
    ("--samples -5 --kernel 1", "--samples"),
    ("--tol 1 --kernel 1", "--tol"),
    ("--derivatives inside --activation relu --kernel 1", "delta"),
    ("--depth 0 --kernel 1", "--depth"),
    ("--dt 0 --kernel 1", "--dt"),
    ("--c-w -1 --kernel 1", "--c-w"),
    ("--width 0 --kernel 1", "--width"),
    ("--quadrature gh --kernel 1", "gh:N"),
    ("--quadrature trapezoid:1 --kernel 1", "trapezoid"),
    ("--derivatives inside --activation relu --kernel 1 --quadrature gh:32", "delta"),
    ("--kernel 1 --n-inputs 3", "--n-inputs"),
    ("--n-inputs 100000", "100000"),
    ("--alpha 0.5 --gamma 0.1 --kernel 1", "--gamma"),
    ("--gamma 5 --dt 1 --kernel 1", "--gamma"),
    ("--nonsense 3", "--nonsense"),
    ("--n-inputs 300 --depth 50", "--memory-mb"),
]


@pytest.mark.parametrize(("line", "says"), BAD, ids=[line for line, _ in BAD])
def test_bad_input(line: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Exit status 2, one message that names the offending thing, no traceback, nothing left behind."""
    import shlex

    words = shlex.split(line, posix=True) if "__import__" not in line else line.split(" ", 1)
    assert main(["run", "resnet-kernel", *words, "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert says in captured.err
    assert not (tmp_path / "out").exists()


def test_kernel_files(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    np.save(tmp_path / "indefinite.npy", np.array([[1.0, 2.0], [2.0, 1.0]]))
    np.save(tmp_path / "shape.npy", np.ones((2, 3)))
    (tmp_path / "nan.csv").write_text("1.0,nan\nnan,1.0\n")
    for name, says in (("indefinite.npy", "eigenvalue"), ("shape.npy", "square"), ("nan.csv", "nan")):
        assert main(["run", "resnet-kernel", "--kernel", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 2
        assert says in capsys.readouterr().err
    np.save(tmp_path / "good.npy", np.array([[1.0, 0.4], [0.4, 0.8]]))
    summary = run(tmp_path / "out", "--kernel", tmp_path / "good.npy", "--depth", 2, "--samples", 0)
    np.testing.assert_array_equal(summary["theory"]["K0"][0], [[1.0, 0.4], [0.4, 0.8]])


def test_unwritable_output(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main(["run", "resnet-kernel", "--kernel", "1", "--out", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err


def test_activation_that_leaves_its_domain_later(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    options = "--activation exp(x^2) --kernel 0.2 --c-w 0.1 --dt 0.2 --depth 20 --samples 0".split()
    assert main(["run", "resnet-kernel", *options, "--out", str(tmp_path / "out")]) == 2
    assert "layer" in capsys.readouterr().err


def test_a_refused_run_does_not_lock_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Following the advice of the message works in the same folder."""
    options = ["--activation", "tanh", "--kernel", "1", "--depth", "1", "--samples", "0"]
    assert main(["run", "resnet-kernel", *options, "--tol", "1e-20", "--out", str(tmp_path / "out")]) == 2
    assert "tolerance" in capsys.readouterr().err
    run(tmp_path / "out", *options)


def test_the_published_step_is_told_from_the_closure(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """identity is solved exactly by the step exact in dt; the published step is not, and the command says whose fault that is."""
    summary = run(tmp_path / "out", *"--activation identity --kernel 1 --depth 3 --width 512 --samples 8000".split())
    assert any("first order in dt" in warning for warning in summary["warnings"])
    assert "V4_one_mode" in capsys.readouterr().err
    z = summary["z"]
    assert abs(array(z["V4"])[-1].item()) > 6
    assert abs(array(z["V4_one_mode"])[-1].item()) < 4


def test_arrays_from_python(tmp_path: Path) -> None:
    import symtensor

    kernel = np.array([[1.0, 0.4], [0.4, 0.8]])
    common = {"quiet": True, "activation": "relu", "depth": 1, "samples": 0}
    result = symtensor.run("resnet-kernel", kernel=kernel, out=str(tmp_path / "k"), **common)
    np.testing.assert_array_equal(result.values("K0")[0], kernel)
    rows = np.array([[1.0, 2.0], [0.5, -1.0]])
    result = symtensor.run("resnet-kernel", inputs=rows, out=str(tmp_path / "x"), **common)
    np.testing.assert_allclose(result.values("K0")[0], rows @ rows.T / 2)


def test_equal_inputs_stay_equal_bit_by_bit(tmp_path: Path) -> None:
    """Theory and simulation of (x, x, 2x, 0): rows of the equal inputs are the same numbers."""
    np.save(tmp_path / "x.npy", np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 4.0], [0.0, 0.0]]))
    options = f"--inputs {tmp_path / 'x.npy'} --c-b 0.1 --dt 0.3 --depth 2 --width 8 --samples 2000".split()
    summary = run(tmp_path / "out", *options)
    for value in (*summary["theory"].values(), *(entry["mean"] for entry in summary["simulation"].values())):
        values = array(value)
        if values.ndim > 1:
            np.testing.assert_array_equal(values[:, 0], values[:, 1])
            np.testing.assert_array_equal(values[:, :, 0], values[:, :, 1])
    assert np.max(np.abs(array(summary["z"]["U1_exact"])[0])) < 5


def test_the_printed_command_repeats_the_run(theory_run: tuple[Path, dict], tmp_path: Path) -> None:
    import shlex

    _, summary = theory_run
    words = shlex.split(summary["command"])[3:]
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert main(["run", "resnet-kernel", *words]) == 0
    again = json.loads((tmp_path / "again" / "summary.json").read_text())
    assert again["theory"] == summary["theory"]
