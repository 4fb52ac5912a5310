"""What a result rests on: versions of the libraries, the machine's kind, and how to cite the software."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

LIBRARIES = ("sympy", "mpmath", "numpy", "scipy", "jax", "jaxlib", "diffrax", "scikit-learn", "matplotlib")

SOFTWARE_BIBTEX = """@software{{symtensor,
  author = {{{{The symtensor developers}}}},
  title = {{{{symtensor: symbolic-numeric derivation of finite-width corrections}}}},
  version = {{{version}}}
}}"""


def library_versions() -> dict[str, str]:
    """Versions of symtensor, Python and the libraries that a number can depend on ("absent" where not installed)."""
    import symtensor

    versions = {"symtensor": symtensor.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "absent"
    return {**versions, "platform": f"{sys.platform} {platform.machine()}"}


def software_citation() -> str:
    """BibTeX of the software itself."""
    import symtensor

    return SOFTWARE_BIBTEX.format(version=symtensor.__version__)
