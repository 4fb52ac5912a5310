"""`python -m symtensor`: the command line."""

from __future__ import annotations

from symtensor.cli import main

raise SystemExit(main())
