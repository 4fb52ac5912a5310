"""The two-population network: routes against each other, mutations, the command, and simulation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symtensor
from derivations.rate_network import DERIVATION
from derivations.rate_network.network import DEFAULT, PAIRS, VARIABLES, D, Network, read_network
from derivations.rate_network.steps import CLASSES, class_of, linear_theory, means_by_hand, relative_difference, steps
from symtensor.activation import X, activation
from symtensor.derivation.model import run_checks
from symtensor.derivation.settings import OptionError, RunContext, Settings
from symtensor.fields import PointError
from symtensor.numerics.langevin import simulate_langevin

R = sp.Rational
#: real rates, time constants that differ, a nonlinearity without symmetry
OTHER = Network("softplus", activation("softplus").expr, ((R(1, 2), -R(4, 5)), (R(9, 10), -R(1, 5))), (R(1, 2), -R(1, 10)), R(1, 2))


def settings(**given: object) -> Settings:
    return Settings.defaults(DERIVATION.options, **given)


def pair_legs(pair: str) -> list[dict[int, int]]:
    one, other = PAIRS[pair]
    return [{one: 1}, {other: 1}]


# -- routes ------------------------------------------------------------------------------------------------------------


def test_the_options_describe_the_default_network() -> None:
    assert read_network(settings()) == DEFAULT


def test_another_network_passes_all_checks() -> None:
    assert not any(value.has(sp.I) for value in OTHER.linear.rates)
    failed = {r.check.name: r.outcome.detail for r in run_checks(steps(OTHER)) if not r.outcome.passed}
    assert not failed


def test_two_loops_of_the_mean_equal_the_moment_hierarchy() -> None:
    for i in range(2):
        errors = relative_difference(DEFAULT.mean(i, 2), {i: 1}, DEFAULT)
        assert set(errors) == {1, 2}
        assert max(errors.values()) < 1e-11


def test_the_library_verifies_a_numerical_saddle_with_oscillating_modes() -> None:
    assert all(rate.has(sp.I) for rate in DEFAULT.linear.rates)
    assert set(DEFAULT.covariance("uv").verify().values) == {0, 1}


def test_a_compiled_sum_is_the_formula() -> None:
    total = DEFAULT.covariance("vu")
    compiled = total.compile()
    assert compiled.arguments == ("t", "D")
    put = {total.legs.windows[0]: R(7, 10), D: R(1, 50)}
    assert float(compiled(0.7, 0.02)) == pytest.approx(float(total.expr.subs(put)), rel=1e-13)
    assert compiled.check().passed


# -- mutations ---------------------------------------------------------------------------------------------------------


def test_a_wrong_curvature_is_seen_at_one_loop_only() -> None:
    slot = sp.Mul(*((X - s) ** 2 for s in DEFAULT.drives(DEFAULT.point)))
    wrong = Network("wrong", DEFAULT.phi + slot / 100, DEFAULT.weights, DEFAULT.inputs)
    near = (value - expected for value, expected in zip(wrong.point, DEFAULT.point))
    assert all(abs(difference) < 1e-20 for difference in near)
    errors = relative_difference(wrong.covariance("uu"), pair_legs("uu"), DEFAULT)
    assert errors[0] < 1e-11 < 1e-4 < errors[1]


def test_a_diagram_that_is_left_out_is_missed() -> None:
    series = DEFAULT.without_diagrams(pair_legs("uv"), 1).values(np.array([0.5]), {D: 1})[1][0]
    parts = [complex(term.value.evaluate(0.5, values={D: 1})).real for term in DEFAULT.covariance("uv").at(1)]
    assert sum(parts) == pytest.approx(series, rel=1e-12)
    for part in parts:
        assert abs(sum(parts) - part - series) > 1e-3 * abs(series)


def test_the_shift_by_hand_feels_every_weight() -> None:
    shift = means_by_hand(DEFAULT)
    for i in range(2):
        for j in range(2):
            table = [list(row) for row in DEFAULT.weights]
            table[i][j] += R(1, 10**3)
            moved = Network("tanh", DEFAULT.phi, tuple(map(tuple, table)), DEFAULT.inputs)
            assert np.all(np.abs(means_by_hand(moved) - shift) > 1e-5)


# -- classes and scaling -----------------------------------------------------------------------------------------------


def test_classes_of_diagrams() -> None:
    names = [class_of(term) for term in DEFAULT.covariance("uu").at(1)]
    assert set(names) == set(CLASSES)
    assert names.count("noise") == 1
    # exchanging the legs maps every class onto itself: all but the symmetric diagram come in pairs
    assert all(names.count(name) % 2 == 0 for name in ("tadpole", "self-loop", "bubble"))


def test_the_noise_diagram_adds_fluctuations_without_delay() -> None:
    """Its part is C = int ds R(t + s) S R(s)^T of a source S(t - t') that is positive: the variances grow."""
    for pair in ("uu", "vv"):
        (term,) = [term for term in DEFAULT.covariance(pair).at(1) if class_of(term) == "noise"]
        assert complex(term.value.evaluate(0, values={D: 1})).real > 0


def test_linear_theory_is_the_tree_level() -> None:
    _, covariance = linear_theory(OTHER)
    for pair, place in PAIRS.items():
        value = complex(OTHER.covariance(pair).at(0).value.evaluate(0, values={D: 1})).real
        assert value == pytest.approx(covariance[place], rel=1e-12)


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"nonlinearity": "relu"}, "kink at x = 0"),
        ({"nonlinearity": "identity"}, "linear"),
        ({"u0": 0.5}, "--u0 alone"),
    ],
)
def test_options_that_cannot_be_used(given: dict, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        read_network(settings(**given))


def test_several_fixed_points_need_a_choice() -> None:
    given = {"a": 3.0, "b": 0.0, "c": 0.5, "d": 0.0, "h_u": 0.0, "h_v": 0.0}
    with pytest.raises(PointError, match="stable"):
        _ = read_network(settings(**given)).theory
    up = sp.nsolve(sp.tanh(3 * X) - X, 1, prec=20)
    v = float(sp.tanh(up / 2))
    chosen = read_network(settings(**given, u0=float(up), v0=v))
    assert chosen.point[0] == pytest.approx(float(up), abs=1e-12)


# -- the command -------------------------------------------------------------------------------------------------------


def test_run_without_simulation(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = symtensor.run("rate-network", quiet=True, noise=0.02, out=str(out))
    summary = json.loads((out / "summary.json").read_text())
    assert all(summary["checks"].values()) and not summary["warnings"]
    shift = means_by_hand(DEFAULT)
    tree, one, _ = summary["values"]["coefficients"]["<v>"]
    assert (tree, one) == (pytest.approx(float(DEFAULT.point[1])), pytest.approx(shift[1], rel=1e-12))
    moments = summary["values"]["moments"]["<v>"]
    assert moments["one loop"] - moments["tree level"] == pytest.approx(0.02 * shift[1], rel=1e-10)
    (shares,) = [table for table in run.results.tables if "Each one-loop diagram" in table.caption]
    columns = np.array([[float(cell.split()[0]) for cell in row[4:]] for row in shares.rows])
    np.testing.assert_allclose(columns[:-1].sum(axis=0), columns[-1], atol=0.005)
    text = (out / "report.html").read_text()
    assert "<svg" in text and "tadpole" in text


def test_too_few_samples_are_refused_before_the_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="too few"):
        DERIVATION.run(settings(samples=5, out=str(tmp_path / "none")), RunContext.silent())
    assert not (tmp_path / "none").exists()


# -- simulation --------------------------------------------------------------------------------------------------------


def test_the_simulated_mean_is_that_of_one_loop() -> None:
    noise = 0.01
    run = simulate_langevin(
        list(DEFAULT.drift().values()), sp.sqrt(2 * D), variables=VARIABLES, parameters={"D": noise}, seed=5,
        point=[float(x) for x in DEFAULT.point], step=0.1, times=[0.0, 1.0], walkers=64 * 40, duration=10,
    )  # fmt: skip
    tree = np.array([float(x) for x in DEFAULT.point])
    one = tree + noise * means_by_hand(DEFAULT)
    two = np.array([float(DEFAULT.mean(i, 2).at(2).expr.subs(D, noise)) for i in range(2)])
    assert np.all(np.abs(run.mean.z(one + two)) < 3.5)
    assert np.all(np.abs(run.mean.z(tree)) > 50)  # no correction
    assert np.all(np.abs(run.mean.z(one - 0.5 * (one - tree))) > 25)  # half of it
    assert np.all(np.abs(run.mean.value - one) < 3.5 * run.mean.se + np.abs(two))


@pytest.mark.slow
def test_run_with_simulation(tmp_path: Path) -> None:
    options = {"samples": 25600, "duration": 20.0, "noise": 0.02, "seed": 3}
    run = symtensor.run("rate-network", quiet=True, out=str(tmp_path / "out"), **options)
    for table in run.results.comparisons:
        assert not table.failures, [row.name for row in table.failures]
    assert all("tree level" in table.told_apart() for table in run.results.comparisons if "tree level" in table.approximations)
    again = symtensor.run("rate-network", quiet=True, out=str(tmp_path / "out"), **options)
    assert again.results.comparisons == run.results.comparisons
    assert again.timings.get("simulation") is None
