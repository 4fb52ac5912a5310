"""Write the golden modules anew: `python tests/codegen/regenerate_golden.py` from the root of the repository."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(TESTS.parent)]

from codegen_kernel_set import GOLDEN, golden_specification  # noqa: E402

from codegen import generate  # noqa: E402

if __name__ == "__main__":
    for name in GOLDEN:
        print(generate(golden_specification(name)).write(TESTS / "golden"))
