"""Runs: bitwise reproducibility over devices, interruption and extension; state files; memory."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from symtensor.numerics import _dispatch
from symtensor.numerics._blocks import plan_block
from symtensor.numerics._checkpoint import FILE
from symtensor.numerics.simulation import MemoryCapError, StateError, StateMismatch, simulate

KERNEL = ((1.0, 0.4), (0.4, 1.3))
WIDTH = 128
BLOCK = plan_block(WIDTH, 2, 3).samples
LONG = 5 * BLOCK + BLOCK // 3
HERE = Path(__file__).parent
PROGRAM = f"""
import sys, time
import jax
jax.config.update("jax_enable_x64", True)
sys.path.insert(0, {str(HERE)!r})
import resource
import numpy as np
from conftest import make_case
from symtensor.numerics.simulation import simulate
case = make_case("tanh", {KERNEL!r}, c_w=1.5, c_b=0.1, depth=3, width={WIDTH})
"""


@pytest.fixture(scope="module")
def case(simulation_case):
    return simulation_case("tanh", KERNEL, c_w=1.5, c_b=0.1, depth=3, width=WIDTH)


@pytest.fixture(scope="module")
def reference(case):
    return simulate(*case, samples=LONG, seed=1)


def arrays(result) -> list[np.ndarray]:
    estimates = [getattr(result, name) for name in ("K", "V4", "K1", "S1", "U1")] + list(result.plain.values())
    return [a for e in estimates for a in (e.mean, e.se)] + [result.control_z]


def assert_bitwise(left, right) -> None:
    assert all(np.array_equal(a, b) for a, b in zip(arrays(left), arrays(right), strict=True))


def start(body: str, *arguments: str, **environment: str) -> subprocess.Popen:
    root = HERE.parents[1]
    variables = {**os.environ, "PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu", **environment}
    command = [sys.executable, "-c", PROGRAM + body, *arguments]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> str:
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return output


def test_same_bits_on_two_devices(reference, tmp_path):
    body = f"""
assert len(jax.local_devices()) == 2
result = simulate(*case, samples={LONG}, seed=1, state=sys.argv[1])
np.savez(sys.argv[1] + "/out.npz", V4=result.V4.mean, se=result.V4.se, U1=result.U1.mean, K=result.plain["K"].mean)
"""
    finish(start(body, str(tmp_path), XLA_FLAGS="--xla_force_host_platform_device_count=2"))
    found = np.load(tmp_path / "out.npz")
    assert np.array_equal(found["V4"], reference.V4.mean) and np.array_equal(found["se"], reference.V4.se)
    assert np.array_equal(found["U1"], reference.U1.mean) and np.array_equal(found["K"], reference.plain["K"].mean)


def test_more_samples_extend_a_run_bit_by_bit(case, reference, tmp_path):
    first = simulate(*case, samples=BLOCK + 7, seed=1, state=tmp_path)
    assert first.resumed == 0
    extended = simulate(*case, samples=LONG, seed=1, state=tmp_path)
    assert extended.resumed == BLOCK
    assert_bitwise(extended, reference)
    again = simulate(*case, samples=LONG, seed=1, state=tmp_path)
    assert again.resumed == 5 * BLOCK
    assert_bitwise(again, reference)
    with pytest.raises(StateError, match=f"already holds {5 * BLOCK} samples, asked for 10"):
        simulate(*case, samples=10, seed=1, state=tmp_path)


def test_samples_do_not_depend_on_how_many_there_are(case, tmp_path):
    """The estimate over the first block is inside the longer run: weights of missing samples are exactly zero."""
    one, masked = (simulate(*case, samples=count, seed=1) for count in (BLOCK, BLOCK - 1))
    total = one.plain["K"].mean * BLOCK - masked.plain["K"].mean * (BLOCK - 1)
    assert np.allclose(total[0], total[0].T) and total[0, 0, 0] > 0
    other = simulate(*case, samples=BLOCK, seed=2)
    assert not np.array_equal(one.V4.mean, other.V4.mean)


def test_interrupt_keeps_the_complete_blocks(case, reference, tmp_path):
    def interrupt(done: int, total: int) -> None:
        if done >= 3 * BLOCK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(*case, samples=LONG, seed=1, state=tmp_path, progress=interrupt)
    resumed = simulate(*case, samples=LONG, seed=1, state=tmp_path)
    assert resumed.resumed == 3 * BLOCK
    assert_bitwise(resumed, reference)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_killed_process_is_resumed(case, reference, tmp_path, sent):
    body = f"simulate(*case, samples={LONG}, seed=1, state=sys.argv[1], progress=lambda d, t: time.sleep(0.4))"
    process = start(body, str(tmp_path))
    deadline = time.monotonic() + 200
    while not (tmp_path / FILE).exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    resumed = simulate(*case, samples=LONG, seed=1, state=tmp_path)
    assert 0 < resumed.resumed < LONG
    assert_bitwise(resumed, reference)


def test_progress_counts_samples(case):
    calls = []
    simulate(*case, samples=2 * BLOCK + 5, seed=1, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(done, 2 * BLOCK + 5) for done in (BLOCK, 2 * BLOCK, 2 * BLOCK + 5)]


def test_changed_parameters_are_named(simulation_case, case, tmp_path):
    simulate(*case, samples=BLOCK, seed=1, state=tmp_path)
    settings = {"c_w": 1.5, "c_b": 0.1, "depth": 3, "width": WIDTH}
    for name, value in (("c_w", 1.4), ("c_b", 0.2), ("alpha", 0.9), ("dt", 0.2), ("depth", 2), ("width", 64)):
        other = simulation_case("tanh", KERNEL, **{**settings, name: value})
        with pytest.raises(StateMismatch, match=rf"other parameters \(.*{name}: ") as caught:
            simulate(*other, samples=BLOCK, seed=1, state=tmp_path)
        assert f"{value!r} now" in str(caught.value)
    with pytest.raises(StateMismatch, match="seed: 1 there, 5 now"):
        simulate(*case, samples=BLOCK, seed=5, state=tmp_path)
    with pytest.raises(StateMismatch, match="activation: 'tanh' there, 'sin' now"):
        simulate(*simulation_case("sin", KERNEL, **settings), samples=BLOCK, seed=1, state=tmp_path)
    with pytest.raises(StateMismatch, match="input kernel"):
        simulate(*simulation_case("tanh", 1.1 * np.array(KERNEL), **settings), samples=BLOCK, seed=1, state=tmp_path)
    with pytest.raises(StateMismatch, match="inputs: 2 there, 1 now"):
        simulate(*simulation_case("tanh", 1.0, **settings), samples=BLOCK, seed=1, state=tmp_path)
    ensemble, leading = case
    changed = type(leading)(leading.K, leading.ES, 1.01 * leading.J)
    with pytest.raises(StateMismatch, match="leading-order array J"):
        simulate(ensemble, changed, samples=BLOCK, seed=1, state=tmp_path)


def test_unreadable_states(case, tmp_path):
    simulate(*case, samples=BLOCK, seed=1, state=tmp_path)
    path = tmp_path / FILE
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for content in (b"", b"not a state", whole[: len(whole) // 2], bytes(flipped)):
        path.write_bytes(content)
        with pytest.raises(StateError, match=re.escape(FILE)):
            simulate(*case, samples=BLOCK, seed=1, state=tmp_path)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StateError, match="cannot create the state folder"):
        simulate(*case, samples=BLOCK, seed=1, state=tmp_path / "file" / "state")


def test_a_failed_write_leaves_the_old_state(case, tmp_path, monkeypatch):
    simulate(*case, samples=BLOCK, seed=1, state=tmp_path)
    before = (tmp_path / FILE).read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        simulate(*case, samples=3 * BLOCK, seed=1, state=tmp_path)
    assert (tmp_path / FILE).read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [FILE]


def test_writing_is_a_small_share_of_the_run(case, tmp_path, monkeypatch):
    """With a write of 1 s and blocks of 0.7 s (a fake clock), at most a twentieth of the time goes into writing."""
    clock = {"now": 0.0, "writing": 0.0}
    monkeypatch.setattr(_dispatch.time, "perf_counter", lambda: clock["now"])

    def write(*_: object) -> None:
        clock["now"] += 1.0
        clock["writing"] += 1.0

    monkeypatch.setattr(_dispatch, "save_state", write)
    saver = _dispatch.Saver(tmp_path, {})
    for block in range(1, 400):
        clock["now"] += 0.7
        saver.offer(_dispatch.State(np.zeros(1), block, {}))
    assert 5 < clock["writing"] <= 0.05 * clock["now"] + 1.0


def test_memory_is_refused_before_any_work(case):
    with pytest.raises(MemoryCapError, match=r"needs \d+ MB with 2 inputs, width 128, depth 3 on 1 device.*cap is 1 MB"):
        simulate(*case, samples=10**6, seed=1, memory_mb=1)


@pytest.mark.parametrize(("width", "inputs"), [(64, 1), (64, 4), (256, 2), (1024, 4), (3, 1)])
def test_memory_estimate_covers_what_xla_allocates(width, inputs):
    import jax
    import jax.numpy as jnp

    from symtensor.numerics._blocks import Law, compile_block

    plan = plan_block(width, inputs, 20)
    executable = compile_block(plan, Law(1.0, 0.1, 1.0, 0.1), jnp.tanh, jax.local_devices()[0])
    analysis = executable.memory_analysis()  # type: ignore[attr-defined]
    used = analysis.temp_size_in_bytes + analysis.output_size_in_bytes + analysis.argument_size_in_bytes
    assert used <= plan.working_bytes() <= 6 * used


def test_peak_memory_does_not_grow_with_samples():
    body = f"""
def peak(samples):
    simulate(*case, samples=samples, seed=1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
few = peak({2 * BLOCK}); many = peak({60 * BLOCK})
print(many - few)
"""
    assert float(finish(start(body)).split()[-1]) < 16.0  # MB; sixty blocks of results would be more
