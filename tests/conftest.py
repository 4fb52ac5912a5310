"""Shared test set-up: float64 in JAX (the caller's choice, and the tests are the caller), no display for matplotlib."""

from __future__ import annotations

import os

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

jax.config.update("jax_enable_x64", True)
