"""README and docs are a contract: their Python runs with the output shown, and README's commands are those that CI runs."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_python_blocks_run_with_the_output_shown() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 20
    assert result.failed == 0


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_pages_run_with_the_output_shown(page: str) -> None:
    result = doctest.testfile(str(ROOT / "docs" / page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 20 or page not in ("bounds.md", "diagrams.md")
    assert result.failed == 0


def test_the_model_file_of_the_page_is_read() -> None:
    from symtensor.diagrams.command_help import EXAMPLE_MODEL
    from symtensor.diagrams.model_file import parse_model

    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "diagrams.md").read_text(), flags=re.DOTALL)
    assert parse_model(text, "page") == parse_model(EXAMPLE_MODEL, "page")


def test_ci_runs_the_readmes_test_command() -> None:
    commands = re.findall(r"```bash\n(.*?)\n```", README, flags=re.DOTALL)
    (tests,) = [command for command in commands if "pytest" in command]
    script = (ROOT / ".ci" / "run").read_text().replace("install --quiet", "install")
    assert tests in script


def test_files_that_the_readme_names_exist() -> None:
    for name in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / name).exists(), name
