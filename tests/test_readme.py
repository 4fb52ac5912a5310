"""The README is a contract: its Python runs with the output shown, and its commands are those that CI runs."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_python_blocks_run_with_the_output_shown() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 20
    assert result.failed == 0


def test_ci_runs_the_readmes_test_command() -> None:
    commands = re.findall(r"```bash\n(.*?)\n```", README, flags=re.DOTALL)
    (tests,) = [command for command in commands if "pytest" in command]
    script = (ROOT / ".ci" / "run").read_text().replace("install --quiet", "install")
    assert tests in script


def test_files_that_the_readme_names_exist() -> None:
    for name in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / name).exists(), name
