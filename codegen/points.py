from __future__ import annotations

from .spec import ModuleSpec

TOLERANCES = {"float64": 1e-9, "float32": 2e-4}


def reference_points(spec: ModuleSpec):
    return ()
