"""The printed derivation: every check passes, each can fail, and the recursions of an MLP are those of the literature."""

from __future__ import annotations

import pytest

from derivations.layered_network import checks, recursions
from derivations.layered_network.steps import steps
from derivations.resnet_kernel.equations import C_W, K0, a, b
from symtensor.fields.layered import cumulant_terms


def test_recursions_are_the_published_ones() -> None:
    assert recursions.mean_recursion() == recursions.published_mean()
    assert recursions.covariance_recursion() == recursions.published_covariance()
    text = recursions.mean_recursion().latex()
    assert r"\sigma^{(4)}" in text
    assert r"{K_1}_{ab}" in text


def test_the_second_tadpole_vanishes_by_locality() -> None:
    first, second = cumulant_terms(1, 1)
    (network,) = second.networks(1)
    value, reason = recursions.layer_value(network)
    assert not value.terms
    assert "strictly retarded" in reason
    assert recursions.layer_value(first.networks(1)[0])[0] == recursions.source()


def test_a_wrong_symmetry_factor_is_not_the_published_recursion() -> None:
    wrong = (recursions.source() * 2 - recursions.source()).canonical()
    assert wrong == recursions.source()
    doubled = (recursions.mean_recursion() + recursions.source() * C_W).canonical()
    assert doubled != recursions.published_mean()


def test_leading_covariance_in_place_of_the_drive_covariance_is_wrong() -> None:
    """V_4 = V + w in the source adds (C/8) w d^4<sigma sigma>, with terms in every component."""
    closure = recursions.source().replace(recursions.V, lambda i, j, k, l: K0[i, k] * K0[j, l] + K0[i, l] * K0[j, k])
    assert len(closure.canonical().terms) >= 4
    assert set(closure.free) == {a, b}


@pytest.mark.parametrize("name", ["COUNTS", "WEIGHTS"])
def test_the_count_check_can_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.counts().passed
    table = dict(getattr(checks, name))
    table[2, 1] = (33, 23) if name == "COUNTS" else "18"
    monkeypatch.setattr(checks, name, table)
    assert not checks.counts().passed


def test_the_check_of_the_mlp_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "mlp_by_recursion", lambda network, name: tuple(1.001 * x for x in _recursion(network, name)))
    assert not checks.mlp_agrees().passed


_recursion = checks.mlp_by_recursion


def test_published_mlp_numbers() -> None:
    """tanh, C_W = 1, q = 1: V = .097523738, .067807494 and K1 = 0, -.03093252 of the published table, layers 2 and 3."""
    from symtensor.fields.layered import LayeredNetwork

    network = LayeredNetwork.single("tanh", c_w=1, alpha=0, dt=1, depth=2, kernel=1.0)
    V, K1 = checks.mlp_by_recursion(network, "tanh")
    assert [f"{x:.9f}" for x in V[1:, 0, 0]] == ["0.097523738", "0.067807494"]
    assert [f"{x:.8f}" for x in K1[1:, 0]] == ["0.00000000", "-0.03093252"]


def test_steps_draw_their_diagrams() -> None:
    drawn = {step.title: len(step.drawings) for step in steps()}
    assert drawn["Mean at order $1/n$"] == 2
    assert drawn["Covariance at leading order"] == 1
    assert drawn["Higher orders"] == 31
