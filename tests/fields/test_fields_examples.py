"""The examples in the docstrings of `symtensor.fields`."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import symtensor.fields

MODULES = sorted(m.name for m in pkgutil.walk_packages(symtensor.fields.__path__, "symtensor.fields."))


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
