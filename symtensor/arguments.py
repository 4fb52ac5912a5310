"""What the commands share: an argument parser whose errors are addressed to the user, and the layout of their help."""

from __future__ import annotations

import argparse
from typing import NoReturn

__all__ = ["Formatter", "Parser", "UsageError"]


class UsageError(ValueError):
    """The command line itself cannot be understood."""


class Parser(argparse.ArgumentParser):
    """Raises UsageError where argparse would print and exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Descriptions as they are written; options in one column."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=100)
