"""The registry: packages, modules, nearest names, broken and foreign ones."""

from __future__ import annotations

import sys

import pytest

from symtensor.derivation.registry import (
    DuplicateDerivationError,
    ShadowedPackageError,
    UnknownDerivationError,
    check_own,
    collect,
    entry_values,
)

MODULE = """
from symtensor.derivation.model import Derivation
DERIVATION = Derivation({name!r}, {title!r}, "", (), (), (), (), (), lambda settings, context: 0)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `mine` with two derivations, a helper, and a private module that must not be touched."""
    root = tmp_path / "mine"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "first.py").write_text(MODULE.format(name="first", title="The first"))
    (root / "second.py").write_text(MODULE.format(name="second", title="The second"))
    (root / "helper.py").write_text("VALUE = 1\n")
    (root / "_private.py").write_text("raise RuntimeError('touched')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield root
    for name in [name for name in sys.modules if name == "mine" or name.startswith("mine.")]:
        del sys.modules[name]


def test_every_public_module_of_a_package_counts(package):
    registry = collect(("mine",))
    assert list(registry) == ["first", "second"]
    assert registry["second"].title == "The second"
    assert registry.broken == {}
    assert "The first" in registry._repr_html_()


def test_an_entry_may_be_one_module(package):
    assert list(collect(("mine.second",))) == ["second"]


def test_unknown_name_lists_and_suggests(package):
    with pytest.raises(UnknownDerivationError) as error:
        collect(("mine",))["frist"]
    assert str(error.value) == "unknown derivation 'frist'; did you mean 'first'? Available: first, second."


def test_a_broken_module_does_not_hide_the_others_and_is_named(package):
    (package / "third.py").write_text("import no_such_library\n")
    registry = collect(("mine", "no_such_package"))
    assert list(registry) == ["first", "second"]
    assert set(registry.broken) == {"mine.third", "no_such_package"}
    with pytest.raises(UnknownDerivationError, match=r"mine.third could not be imported: ModuleNotFoundError"):
        registry["third"]


def test_a_wrong_type_is_named(package):
    (package / "wrong.py").write_text("DERIVATION = 3\n")
    assert "mine.wrong.DERIVATION is a int" in str(collect(("mine",)).broken["mine.wrong"])


def test_two_derivations_of_one_name_are_refused(package):
    (package / "twin.py").write_text(MODULE.format(name="first", title="Again"))
    with pytest.raises(DuplicateDerivationError, match=r"'first' is used by mine.first and by mine.twin"):
        collect(("mine",))


def test_our_own_package_is_always_looked_at():
    assert "derivations" in entry_values()


def test_a_foreign_package_of_our_name_is_reported_with_its_place(tmp_path, monkeypatch):
    (tmp_path / "codegen_standin").mkdir()
    (tmp_path / "codegen_standin" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ShadowedPackageError) as error:
        check_own("codegen_standin")
    assert "'codegen_standin'" in str(error.value) and str(tmp_path / "codegen_standin") in str(error.value)
    check_own("codegen_standin", home=tmp_path)


def test_a_missing_own_package_is_reported():
    with pytest.raises(ShadowedPackageError, match="Python finds none"):
        check_own("no_such_package_anywhere")


def test_the_shipped_packages_are_ours():
    check_own("derivations")
    check_own("codegen")
