"""Options and settings: parsing, refusals by name, the command that repeats a run."""

from __future__ import annotations

import io
import shlex

import pytest

from symtensor.derivation.settings import Option, OptionError, RunContext, Settings, command_line

DEPTH = Option("--depth", int, 4, "layers", minimum=1)
DT = Option("--dt", float, 0.5, "step", above=0)
MODE = Option("--derivatives", str, None, "where", choices=("inside", "hermite"))
RESUME = Option("--resume", bool, False, "go on")
OUT = Option("--out", str, None, "folder")


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        (DEPTH, "0", "--depth must be at least 1, got 0"),
        (DEPTH, "2.5", "--depth must be a whole number, got '2.5'"),
        (DT, "0", "--dt must be greater than 0, got 0"),
        (DT, "nan", "--dt must be a finite number, got 'nan'"),
        (DT, "inf", "--dt must be a finite number, got 'inf'"),
        (DT, "x", "--dt must be a number, got 'x'"),
        (MODE, "outside", "--derivatives must be one of inside, hermite; got 'outside'"),
    ],
)
def test_bad_values_are_refused_by_name(option, text, message):
    with pytest.raises(OptionError) as error:
        option.parse(text)
    assert str(error.value) == message


def test_good_values_are_converted():
    assert DEPTH.parse("12") == 12 and isinstance(DEPTH.parse("12"), int)
    assert DT.parse("1e-3") == 1e-3
    assert MODE.parse("inside") == "inside"


def test_own_converter_keeps_its_message():
    def even(text: str) -> int:
        if int(text) % 2:
            raise ValueError(f"must be even, got {text}")
        return int(text)

    with pytest.raises(OptionError, match="--n must be even, got 3"):
        Option("--n", even, 2, "").parse("3")


def test_settings_are_a_read_only_mapping_with_defaults():
    settings = Settings.defaults((DEPTH, DT), depth=7)
    assert dict(settings) == {"depth": 7, "dt": 0.5}
    assert settings.given == {"depth"}
    with pytest.raises(TypeError):
        settings["depth"] = 3  # type: ignore[index]
    with pytest.raises(OptionError, match="unknown setting 'depht'"):
        Settings.defaults((DEPTH,), depht=7)


def test_command_line_spells_out_every_value_and_survives_the_shell():
    options = (DEPTH, DT, Option("--activation", str, "tanh", ""), OUT, RESUME)
    settings = Settings.defaults(options, dt=0.1, activation="x*exp(-x**2); rm", out="my folder", resume=True)
    text = command_line("toy", options, settings)
    assert shlex.split(text) == [
        "symtensor", "run", "toy", "--depth", "4", "--dt", "0.1", "--activation", "x*exp(-x**2); rm",
        "--out", "my folder",
    ]  # fmt: skip


def test_context_writes_results_and_notes_apart_and_shows_no_bar_without_a_terminal():
    out, err = io.StringIO(), io.StringIO()
    context = RunContext("command", out, err)
    context.say("[bold]literal[/bold]")
    context.note("careful")
    with context.progress("simulating") as update:
        update(1, 2)
    assert out.getvalue() == "[bold]literal[/bold]\n"
    assert err.getvalue() == "careful\n"
    assert context.width == 110


def test_silent_context_prints_nothing(capsys):
    context = RunContext.silent()
    context.say("x")
    context.note("y")
    context.show("z")
    with context.progress("w") as update:
        update(1, 1)
    assert capsys.readouterr() == ("", "")


def test_progress_on_a_terminal_draws_and_cleans_up():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    err = Terminal()
    with RunContext("", None, err).progress("simulating") as update:
        update(1, 4)
        update(4, 4)
    assert "simulating" in err.getvalue()
