"""Derivations by name: every module that an entry point of the group `symtensor.derivations` leads to.

An entry point names either a module with a module-level `DERIVATION`, or a package; then every module in the package
that has one counts. So a derivation is added by adding one file, here or in a distribution of one's own.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import importlib.util
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from symtensor.derivation.model import Derivation

GROUP = "symtensor.derivations"
OWN = "derivations"
#: top-level packages that ship with symtensor under generic names, which another distribution may also use
SHIPPED = ("derivations", "codegen")


class UnknownDerivationError(ValueError):
    """No derivation of that name; the text lists those there are and the nearest match."""


class DuplicateDerivationError(ValueError):
    """Two modules define derivations of the same name; the text names both."""


class ShadowedPackageError(ImportError):
    """A foreign package stands where one shipped with symtensor should; the text says where it lies."""


class DerivationEntryError(TypeError):
    """A module's `DERIVATION` is not a `Derivation`; the text names the module."""


@dataclass(frozen=True, slots=True)
class Registry(Mapping[str, Derivation]):
    """The derivations found, by name in alphabetic order, and the modules that could not be imported."""

    found: Mapping[str, Derivation]
    broken: Mapping[str, Exception]

    def __getitem__(self, name: str) -> Derivation:
        if name in self.found:
            return self.found[name]
        raise UnknownDerivationError(self._unknown(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, list(self.found), n=1)
        text = f"unknown derivation {name!r}" + (f"; did you mean {near[0]!r}?" if near else ".")
        text += f" Available: {', '.join(self.found)}." if self.found else " No derivation is installed."
        for module, error in self.broken.items():
            text += f" (The module {module} could not be imported: {type(error).__name__}: {error})"
        return text

    def _repr_html_(self) -> str:
        from symtensor.derivation.document import Document

        rows = [(name, derivation.title) for name, derivation in self.found.items()]
        return Document("Derivations").table(("name", "title"), rows).fragment()


def derivations() -> Registry:
    """All derivations installed with symtensor or offered by other distributions.

    Raises ShadowedPackageError if a foreign `derivations` or `codegen` hides ours, and DuplicateDerivationError if a
    name is taken twice. A module that fails to import does not hide the others: it is listed in `broken`.
    """
    for package in SHIPPED:
        check_own(package)
    return collect(entry_values())


def find(name: str) -> Derivation:
    """The derivation called `name`. Raises UnknownDerivationError with the list of names and the nearest match."""
    registry = derivations()
    modules = [module for module in registry.broken if module.rpartition(".")[2].replace("_", "-") == name]
    if modules:
        raise registry.broken[modules[0]]
    return registry[name]


def entry_values() -> tuple[str, ...]:
    """The modules named by entry points; our own package also counts in a source tree that is not installed."""
    values = {entry.module for entry in importlib.metadata.entry_points(group=GROUP)}
    return tuple(sorted(values | {OWN}))


def collect(values: tuple[str, ...]) -> Registry:
    """Import the modules that `values` (module or package names) lead to and gather their `DERIVATION`s."""
    found: dict[str, tuple[str, Derivation]] = {}
    broken: dict[str, Exception] = {}
    for module_name in _module_names(values, broken):
        try:
            derivation = _derivation_of(importlib.import_module(module_name))
        except Exception as error:  # a broken module of one author must not take the others' commands away
            broken[module_name] = error
            continue
        if derivation is None:
            continue
        if derivation.name in found:
            raise DuplicateDerivationError(
                f"the derivation name {derivation.name!r} is used by {found[derivation.name][0]} and by {module_name}"
            )
        found[derivation.name] = (module_name, derivation)
    return Registry({name: found[name][1] for name in sorted(found)}, broken)


def _module_names(values: tuple[str, ...], broken: dict[str, Exception]) -> list[str]:
    """`values` with every package replaced by itself and the public modules in it."""
    names: list[str] = []
    for value in values:
        try:
            module = importlib.import_module(value)
        except Exception as error:  # as above: named, not fatal
            broken[value] = error
            continue
        names.append(value)
        inside = pkgutil.iter_modules(getattr(module, "__path__", []))
        names += sorted(f"{value}.{found.name}" for found in inside if not found.name.startswith("_"))
    return names


def _derivation_of(module: ModuleType) -> Derivation | None:
    value = getattr(module, "DERIVATION", None)
    if value is None or isinstance(value, Derivation):
        return value
    raise DerivationEntryError(
        f"{module.__name__}.DERIVATION is a {type(value).__name__}; it must be a symtensor.derivation.Derivation"
    )


def check_own(package: str, home: Path | None = None) -> None:
    """Raise ShadowedPackageError unless the top-level `package` lies beside symtensor (`home`: its parent folder)."""
    import symtensor

    home = home or Path(symtensor.__file__).resolve().parent.parent
    spec = importlib.util.find_spec(package)
    places = [Path(place).resolve() for place in (spec.submodule_search_locations or ())] if spec else []
    if spec and not places and spec.origin:
        places = [Path(spec.origin).resolve()]
    if home / package in places:
        return
    where = f"Python finds another one at {places[0]}" if places else "Python finds none"
    raise ShadowedPackageError(
        f"symtensor needs its own package {package!r}, which lies beside it, but {where}. "
        f"Run from another folder, rename that package, or install symtensor in an environment of its own."
    )
