"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["scale", "order_term", "series", "expand", "remainder", "taylor"])
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(f"symtensor.expansion.{name}"))
    assert result.attempted > 0 and result.failed == 0
