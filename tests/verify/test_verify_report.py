"""Reports: complete, honest, escaped; the plot; the command line; the examples of the documentation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from symtensor import cli
from symtensor.verify import LAWS, Verification, verify_bound, verify_samples

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
BLIND = ("finite range", "rare events", "other sizes", "slow factors")


@pytest.fixture(scope="module")
def result() -> Verification:
    return verify_bound(LAWS["power"].sampler(), "sqrt(n)", label="<b>n^U & more</b>", budget=500)


def test_every_form_says_what_cannot_be_seen_and_on_what_it_depends(result: Verification) -> None:
    for report in (result.text(), result.markdown(), result.html(figure=False), str(result)):
        for part in (*BLIND, "tolerance n^", "alpha = 0.05", "R17", "What would change it"):
            assert part in report
    assert "n in [39, 5292]" in result.headline and result.range == (39, 5292)
    assert max(map(len, result.text().splitlines()[4:])) <= 112


def test_html_is_escaped_and_contains_the_plot(result: Verification) -> None:
    page = result._repr_html_()
    assert "<b>n^U" not in page and "&lt;b&gt;n^U &amp; more" in page
    assert page.count("<svg") == page.count("</svg>") == 1 and "<script" not in page and "metadata" not in page
    HTMLParser().feed(page)
    assert result.svg() == result.svg()


def test_json_values_round_trip(result: Verification) -> None:
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["verdict"] == result.verdict and data["levels"][1]["slope"] == result.levels[1].slope
    assert len(data["blind_spots"]) == 4 and data["sizes"] == list(result.sizes)


def test_the_plot_shows_quantiles_bands_and_slopes(result: Verification) -> None:
    figure = result.plot()
    (axes,) = figure.axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    points = axes.lines[0]
    assert np.allclose(points.get_ydata(), np.exp(result.levels[0].log_ratio)) and list(points.get_xdata()) == list(result.sizes)
    line = axes.lines[1]
    x, y = np.log(np.asarray(line.get_xdata(), float)), np.log(np.asarray(line.get_ydata(), float))
    assert np.allclose(np.diff(y) / np.diff(x), result.levels[0].slope)
    assert len(axes.collections) == len(result.levels) + 1


def test_nothing_to_plot_is_said() -> None:
    few = verify_samples({n: np.random.default_rng(n).random(5) + 1 for n in (10, 21, 40, 83)}, claim="1")
    assert few.verdict == "inconclusive" and "Levels refused" in few.text() and "<svg" not in few.html()
    with pytest.raises(ValueError, match="every level was refused"):
        few.plot()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    rows = [f"{n},{np.linalg.norm(rng.standard_normal(n)):.6g}" for n in (33, 67, 131, 262, 518, 1043) for _ in range(300)]
    path = tmp_path / "norms.csv"
    path.write_text("n,value\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_the_command_prints_the_verdict_and_writes_the_folder(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert cli.main(["verify", str(data), "--claim", "sqrt(n)", "--kind", "Theta", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "norms = Theta(sqrt(n))" in printed and "verdict  consistent" in printed
    assert all(part in printed for part in BLIND)
    assert sorted(path.name for path in out.iterdir()) == ["plot.svg", "report.html", "report.md", "verdict.json"]
    assert json.loads((out / "verdict.json").read_text())["verdict"] == "consistent"


def test_the_command_as_json_and_other_verdicts(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for claim, verdict in (("n", "not tight"), ("1", "violated")):
        assert cli.main(["verify", str(data), "--claim", claim, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["verdict"] == verdict
    assert cli.main(["verify", str(data), "--claim", "sqrt(n)", "--status", "lower"]) == 0
    assert "inconclusive" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--claim", "2^n"], "outside the group"),
        (["--claim", "n*m"], "several size parameters"),
        (["--claim", "n", "--alpha", "2"], "alpha = 2"),
        (["--claim", "n", "--levels", "a,b"], "--levels: 'a,b'"),
        (["--claim", "n", "--kind", "o"], "--kind"),
        (["--claim", "n", "--value-column", "norm"], "no column 'norm'"),
        ([], "--claim"),
        (["--claim", "__import__('os')"], "__import__"),
    ],
)
def test_bad_input_is_one_message_and_status_2(
    data: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert cli.main(["verify", str(data), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("symtensor: error: ") and message in error and "Traceback" not in error


def test_help_and_warnings(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", "--help"]) == 0
    assert "what it cannot see" in capsys.readouterr().out.lower()
    text = data.read_text().replace("n,value", "n,value,seed").replace("\n", ",7\n").replace("value,seed,7", "value,seed")
    data.write_text(text)
    assert cli.main(["verify", str(data), "--claim", "sqrt(n)"]) == 0
    assert "columns 'seed' are ignored" in capsys.readouterr().err


def test_python_examples_of_the_documentation_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS, flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "docs/verify.md", "exec"), {})
    expected = re.findall(r"```text\n(.*?)```", DOCS, flags=re.DOTALL)
    assert expected and expected[0] in capsys.readouterr().out


def test_nothing_but_the_plot_needs_matplotlib_and_nothing_needs_jax() -> None:
    code = (
        "import sys; from symtensor.verify import LAWS, verify_bound;"
        "verify_bound(LAWS['vector'].sampler(), 'sqrt(n)').text();"
        "assert not {'jax', 'matplotlib', 'jinja2'} & set(sys.modules), sorted(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr


def test_doctests_run() -> None:
    import doctest
    import importlib

    for name in ("sizes", "levels", "slope", "verdict", "claim", "samples", "rates", "run"):
        tested = doctest.testmod(importlib.import_module(f"symtensor.verify.{name}"))
        assert tested.attempted and not tested.failed, name
