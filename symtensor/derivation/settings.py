"""What a run is asked (options, settings) and what it is given to speak with (context).

A derivation declares its options as values; the command line turns them into `--help`, parses and checks them, and
hands the derivation a `Settings`. The derivation never sees `argv`, and prints only through its `RunContext`.
"""

from __future__ import annotations

import math
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

#: options that say where and how a run works, not what it computes: they are left out of comparisons of two runs
INCIDENTAL = ("out", "resume", "memory_mb")
#: columns of output that does not go to a terminal
PAGE = 110


class OptionError(ValueError):
    """An option's value cannot be used; the text names the option, what was given and what is required."""


@dataclass(frozen=True, slots=True)
class Option:
    """One command-line option of a derivation.

    `type` is `int`, `float`, `str`, `bool` (a switch without value, default False) or any function of the text that
    raises ValueError. `minimum` is an inclusive lower bound, `above` an exclusive one. Floats must be finite.
    `unless` is the key of an option that makes this one meaningless when it has a value.
    """

    name: str
    type: Callable[[str], Any]
    default: Any
    help: str
    choices: tuple[str, ...] | None = None
    metavar: str | None = None
    group: str = "options"
    minimum: float | None = None
    above: float | None = None
    unless: str = ""

    @property
    def key(self) -> str:
        """The option's name in `Settings`: `--c-w` is `c_w`."""
        return self.name.lstrip("-").replace("-", "_")

    @property
    def is_switch(self) -> bool:
        """True for an option that takes no value."""
        return self.type is bool

    def parse(self, text: str) -> Any:
        """The checked value of `text`. Raises OptionError naming the option."""
        value = self._convert(text)
        if isinstance(value, float) and not math.isfinite(value):
            raise OptionError(f"{self.name} must be a finite number, got {text!r}")
        if self.choices is not None and value not in self.choices:
            raise OptionError(f"{self.name} must be one of {', '.join(self.choices)}; got {text!r}")
        if self.minimum is not None and value < self.minimum:
            raise OptionError(f"{self.name} must be at least {self.minimum:g}, got {text}")
        if self.above is not None and value <= self.above:
            raise OptionError(f"{self.name} must be greater than {self.above:g}, got {text}")
        return value

    def _convert(self, text: str) -> Any:
        try:
            return self.type(text)
        except OptionError:
            raise
        except (ValueError, TypeError) as error:
            kinds: dict[Any, str] = {int: "a whole number", float: "a number"}
            wanted = f"must be {kinds[self.type]}, got {text!r}" if self.type in kinds else str(error)
            raise OptionError(f"{self.name} {wanted}") from error


@dataclass(frozen=True, slots=True)
class Settings(Mapping[str, Any]):
    """The values of a run's options by key, as a read-only mapping: `settings["c_w"]`.

    `given` holds the keys that the user named; the others have their default (or, with `--resume`, stored) value.
    """

    values_by_key: Mapping[str, Any]
    given: frozenset[str] = frozenset()

    def __getitem__(self, key: str) -> Any:
        return self.values_by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_key)

    def __len__(self) -> int:
        return len(self.values_by_key)

    @classmethod
    def defaults(cls, options: tuple[Option, ...], **given: Any) -> Settings:
        """All defaults of `options`, with the values named in `given` (for use from Python)."""
        values = {option.key: option.default for option in options}
        unknown = sorted(set(given) - set(values))
        if unknown:
            raise OptionError(f"unknown setting {unknown[0]!r}; known: {', '.join(values)}")
        return cls({**values, **given}, frozenset(given))


def command_line(name: str, options: tuple[Option, ...], settings: Mapping[str, Any]) -> str:
    """The command that repeats a run: every option that has a value, spelt out, so that new defaults change nothing."""
    words = ["symtensor", "run", name]
    for option in options:
        value = settings[option.key]
        if option.unless and settings[option.unless] is not None:
            continue
        if option.is_switch:
            words += [option.name] if value and option.key not in INCIDENTAL else []
        elif value is not None:
            words += [option.name, shlex.quote(repr(value) if isinstance(value, float) else str(value))]
    return " ".join(words)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run leaves: the exit status, the output folder, and anything a caller from Python may want to hold."""

    status: int = 0
    output: Path | None = None
    value: Any = None


@dataclass(frozen=True, slots=True)
class RunContext:
    """Where a run speaks: results to `out`, progress and notes to `err`; `command` is how to repeat the run.

    `RunContext.silent()` speaks nowhere (tests, notebooks).
    """

    command: str = ""
    out: IO[str] | None = field(default_factory=lambda: sys.stdout)
    err: IO[str] | None = field(default_factory=lambda: sys.stderr)

    @classmethod
    def silent(cls, command: str = "") -> RunContext:
        """A context that prints nothing."""
        return cls(command, None, None)

    def say(self, text: str = "") -> None:
        """Print one line of plain text to the results stream (no markup is interpreted)."""
        if self.out is not None:
            print(text, file=self.out, flush=True)

    def note(self, text: str) -> None:
        """Print one line to the notes stream (warnings, what is being done)."""
        if self.err is not None:
            print(text, file=self.err, flush=True)

    @property
    def width(self) -> int:
        """Columns of the results stream: the terminal's, or `PAGE` where there is none."""
        if self.out is None or not self.out.isatty():
            return PAGE
        return shutil.get_terminal_size((PAGE, 24)).columns

    def show(self, renderable: RenderableType) -> None:
        """Print a rich renderable, for example a table, `width` columns wide."""
        if self.out is not None:
            from rich.console import Console

            Console(file=self.out, highlight=False, width=self.width).print(renderable)

    @contextmanager
    def progress(self, label: str) -> Iterator[Callable[[int, int], None]]:
        """A progress bar on a terminal, nothing elsewhere: yields `update(done, total)`."""
        if self.err is None or not self.err.isatty():
            yield _ignore
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(file=self.err), transient=True) as bar:
            task = bar.add_task(label, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)


def _ignore(done: int, total: int) -> None:
    """Progress nobody watches."""
