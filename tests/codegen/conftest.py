"""Makes the helper module `codegen_kernel_set` importable (tests are imported by path, so their folder is on no path)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
