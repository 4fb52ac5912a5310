"""Shared test set-up: float64 in JAX (the caller's choice, and the tests are the caller), no display for matplotlib."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    """Whatever an example does to JAX's precision, the next test has float64."""
    yield
    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        jax.config.update("jax_enable_x64", True)
