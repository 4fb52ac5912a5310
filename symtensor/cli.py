"""The command line: `symtensor run NAME [options]`, `symtensor derivations`, `symtensor diagrams MODEL [options]`.

This module owns the process: it alone enables 64-bit floats, and it turns errors addressed to the user into one
message and exit status 2. Anything else is a defect and keeps its traceback (status 1). Interrupts end with 130.
"""

from __future__ import annotations

import argparse
import dis
import errno
import io
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from symtensor import __version__
from symtensor.arguments import Formatter, Parser, UsageError
from symtensor.derivation.model import Derivation
from symtensor.derivation.output import PARAMETERS_NAME, stored_parameters
from symtensor.derivation.registry import Registry, derivations, find
from symtensor.derivation.settings import Option, OptionError, RunContext, RunResult, Settings, command_line

USAGE = """usage: symtensor run NAME [options]         derive, generate, evaluate, simulate, compare, report
       symtensor run NAME --help            its options, with defaults and examples
       symtensor derivations                the derivations there are
       symtensor fields MODEL [options]     a field theory to diagrams, formula and JAX module
       symtensor fields --help              named theories, theory files, examples
       symtensor diagrams MODEL [options]   enumerate Feynman diagrams: count, list, draw, verify
       symtensor diagrams --help            models, classes, filters, model files, examples
       symtensor verify DATA.csv --claim F  measured norms against a claimed stochastic bound: a verdict with its limits
       symtensor cache info|verify|clear|path   the generated modules that are kept on disk
       symtensor --version
"""

HELP = (
    USAGE
    + """
symtensor derives correction terms symbolically, generates a JAX module for them, evaluates it, and checks the numbers
against a simulation of the system itself.

start here
  symtensor run resnet-kernel --out out/first
      The default run: real images through a wide random network. Under two minutes on two cores.
  symtensor run resnet-kernel --kernel 2.0 --c-w 2 --dt 0.0025 --depth 800 --samples 0 --out out/theory
      Theory alone, for one input of variance 2.
  symtensor fields cubic-langevin --cumulant x,x --loops 2 --out out/langevin
      Loop corrections of a stochastic equation: diagrams, closed formula, generated module.
  symtensor diagrams phi4 --legs 2 --loops 3 --class 1pi --out out/phi4
      Feynman diagrams with symmetry factors, and their pictures.

what comes out of run (in the folder named by --out)
  report.html        read this: equations, assumptions, checks, tables, plots; opens offline in any browser
  summary.json       all numbers, for programs
  results.nc         all arrays with named axes (NetCDF; xarray.open_dataset reads it)
  parameters.json    what the folder was made from; other parameters in the same folder are refused
  *.py               the generated JAX module; it needs only jax

exit status
  0 done; 1 a defect (please report the traceback); 2 bad input, one message says what and how to mend it;
  130 interrupted (the message says how to go on)

from Python
  import symtensor; symtensor.derivations(); symtensor.expect("tanh", 2.0); symtensor.citation()
  from symtensor.diagrams import enumerate_diagrams
"""
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (without the program's name) and return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _tolerate_narrow_encodings()
    try:
        return _dispatch(arguments)
    except KeyboardInterrupt:
        print("symtensor: interrupted before anything was stored", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, for example `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"symtensor: error: the output could not be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered cannot go anywhere either
        return 2
    except Exception as error:
        if not addressed_to_user(error):
            raise
        print(f"symtensor: error: {error}", file=sys.stderr)
        return 2


def _tolerate_narrow_encodings() -> None:
    """Let a terminal or pipe without Unicode show replacements instead of failing after the work is done."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def addressed_to_user(error: BaseException, extra: str = "") -> bool:
    """True if the text of `error` was written for the user, so that a traceback would only hide it.

    That is: its class is defined in our packages (or in `extra`, the package of a derivation), or it is a plain
    ValueError or TypeError that a `raise` statement there raised. The same error out of a call into another library
    is a defect.
    """
    roots = {"symtensor", "codegen", "derivations", extra} - {""}
    if any(kind.__module__.partition(".")[0] in roots for kind in type(error).__mro__):
        return True
    return isinstance(error, (ValueError, TypeError)) and _raised_in(error) in roots


def _raised_in(error: BaseException) -> str:
    """The top-level package whose `raise` statement raised `error`; empty if it came out of compiled code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_code.co_code[trace.tb_lasti] != dis.opmap["RAISE_VARARGS"]:
        return ""
    return str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0
    command, *rest = arguments
    if command in ("-V", "--version", "version"):
        print(f"symtensor {__version__}")
        return 0
    if command == "derivations":
        return _list(rest)
    if command == "run":
        return _run(rest)
    if command == "diagrams":
        return _diagrams(rest)
    if command == "verify":
        from symtensor.verify.command import main as verify

        return verify(rest)
    if command == "fields":
        from symtensor.derivation.fields_command import main as fields

        prepare_jax()
        return fields(rest)
    if command == "cache":
        from symtensor.cache_command import main as cache

        return cache(rest)
    commands = "run, derivations, fields, diagrams, verify, cache, --version, --help"
    raise UsageError(f"unknown command {command!r}; there are: {commands}")


def _list(rest: list[str]) -> int:
    if rest and rest != ["--help"]:
        raise UsageError(f"'symtensor derivations' takes no arguments, got {rest[0]!r}")
    print(_listing(derivations()))
    return 0


def _listing(registry: Registry) -> str:
    width = max((len(name) for name in registry), default=0)
    lines = [f"  {name:<{width}}  {value.summary or value.title}" for name, value in registry.items()]
    lines += [f"  (not importable: {module}: {error})" for module, error in registry.broken.items()]
    return "\n".join(lines) if lines else "  no derivation is installed"


def _diagrams(rest: list[str]) -> int:
    from symtensor.diagrams import THEORIES
    from symtensor.diagrams.command import main as diagrams

    if not rest:
        raise UsageError(f"which model? There are: {', '.join(THEORIES)}; or a model file (see symtensor diagrams --help)")
    return diagrams(rest)


def _run(rest: list[str]) -> int:
    if not rest:
        raise UsageError(f"which derivation? There are: {', '.join(derivations())}")
    if rest[0] in ("-h", "--help"):
        print(f"{USAGE}\nderivations\n{_listing(derivations())}")
        return 0
    if rest[0].startswith("-"):
        raise UsageError(f"the name of the derivation comes first: symtensor run NAME {rest[0]} ...")
    prepare_jax()
    derivation = find(rest[0])
    settings = parse(derivation, rest[1:])
    if settings is None:
        return 0
    context = RunContext(command_line(derivation.name, derivation.options, settings))
    try:
        result = derivation.run(settings, context)
    except KeyboardInterrupt:
        print(_interrupted(derivation, settings), file=sys.stderr)
        return 130
    except Exception as error:
        if not addressed_to_user(error, getattr(derivation.run, "__module__", "").partition(".")[0]):
            raise
        print(f"symtensor run {derivation.name}: error: {error}", file=sys.stderr)
        return 2
    return result.status if isinstance(result, RunResult) else int(result or 0)


def _interrupted(derivation: Derivation, settings: Settings) -> str:
    """Says whether anything is stored, and the command that goes on from there."""
    start = f"symtensor run {derivation.name}: interrupted"
    out = settings.get("out")
    if not out or not (Path(out) / PARAMETERS_NAME).exists():
        return f"{start} before anything was stored"
    if "resume" not in settings:
        return f"{start}; what is done is kept in {str(out)!r}"
    again = f"symtensor run {derivation.name} --resume --out {shlex.quote(str(out))}"
    return f"{start}; what is done is kept. Go on with: {again}"


def prepare_jax() -> None:
    """Ask JAX for 64-bit floats and one CPU device per core, before anything imports it.

    Environment variables do it without importing JAX here; choices of the user's own are respected for the devices.
    In a process that has imported JAX already, the precision alone can still be set.
    """
    jax = sys.modules.get("jax")
    if jax is not None:
        jax.config.update("jax_enable_x64", True)
        return
    os.environ["JAX_ENABLE_X64"] = "1"
    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        os.environ.setdefault("JAX_NUM_CPU_DEVICES", str(_cores()))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parse(derivation: Derivation, arguments: Sequence[str]) -> Settings | None:
    """The settings that `arguments` ask for; None if they ask for help, which is then printed.

    With `--resume`, options that are not given take the values stored in the output folder.
    Raises UsageError or OptionError, naming the option.
    """
    if any(argument in ("-h", "--help") for argument in arguments):
        print(_parser(derivation).format_help(), end="")
        return None
    raw = vars(_parser(derivation).parse_args(_join_values(arguments, derivation.options)))
    values: dict[str, Any] = {}
    given = set()
    for option in derivation.options:
        text = raw[option.key]
        if text is None:
            values[option.key] = False if option.is_switch and option.default is None else option.default
        else:
            values[option.key] = text if option.is_switch else option.parse(text)
            given.add(option.key)
    if values.get("resume") and values.get("out"):
        stored = stored_parameters(Path(values["out"])) or {}
        for option in derivation.options:
            if option.key not in given and option.key in stored:
                values[option.key] = stored[option.key]
    return Settings(values, frozenset(given))


def _join_values(arguments: Sequence[str], options: Sequence[Option]) -> list[str]:
    """Write `--option -value` as `--option=-value`: argparse takes `-x**2` or `-1e-3` for options otherwise."""
    names = {option.name for option in options}
    takes_value = {option.name for option in options if not option.is_switch}
    joined: list[str] = []
    waiting = False
    for argument in arguments:
        if waiting and argument.startswith("-") and argument.partition("=")[0] not in names:
            joined[-1] += f"={argument}"
            waiting = False
            continue
        joined.append(argument)
        waiting = not waiting and argument in takes_value
    return joined


def _parser(derivation: Derivation) -> argparse.ArgumentParser:
    """An argparse parser with the derivation's options in their groups; every value stays text, checked later."""
    prog = f"symtensor run {derivation.name}"
    parser = Parser(
        prog=prog, usage=f"{prog} [options]", description=_description(derivation), epilog=_epilog(derivation),
        formatter_class=Formatter, allow_abbrev=False, add_help=False,
    )  # fmt: skip
    groups: dict[str, Any] = {}
    for option in derivation.options:
        group = groups.get(option.group)
        if group is None:
            group = groups[option.group] = parser.add_argument_group(option.group)
        if option.is_switch:
            group.add_argument(option.name, dest=option.key, action="store_true", default=None, help=_help(option))
        else:
            group.add_argument(option.name, dest=option.key, metavar=_metavar(option), default=None, help=_help(option))
    return parser


def _metavar(option: Option) -> str:
    return option.metavar or ("|".join(option.choices) if option.choices else option.key.upper())


def _help(option: Option) -> str:
    default = "" if option.default is None or option.is_switch else f" (default: {option.default})"
    return (option.help + default).replace("%", "%%")


def _description(derivation: Derivation) -> str:
    return derivation.title + (f"\n\n{derivation.summary}" if derivation.summary else "")


def _epilog(derivation: Derivation) -> str:
    parts = []
    if derivation.examples:
        lines = [f"  {command}\n      {text}" for text, command in derivation.examples]
        parts.append("examples\n" + "\n".join(lines))
    if derivation.outputs:
        parts.append("what comes out\n" + "\n".join(f"  {line}" for line in derivation.outputs.splitlines()))
    parts.append("See also: symtensor --help")
    return "\n\n".join(parts)


__all__ = ["OptionError", "UsageError", "addressed_to_user", "main", "parse", "prepare_jax"]
