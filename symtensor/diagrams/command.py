"""The command `symtensor diagrams MODEL [options]`: count, list, draw and verify diagrams.

Errors are raised, addressed to the user; `symtensor.cli` turns them into one message and exit status 2.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

from symtensor.arguments import Formatter, Parser
from symtensor.diagrams.collection import DiagramSet, Tally, enumerate_diagrams
from symtensor.diagrams.command_help import DESCRIPTION, EPILOG, USAGE
from symtensor.diagrams.command_output import check_folder, write_document, write_folder
from symtensor.diagrams.diagram import Diagram
from symtensor.diagrams.dressed import check_dressed
from symtensor.diagrams.errors import IncompleteError, InfiniteRequestError, ModelError, RequestError
from symtensor.diagrams.model import Model
from symtensor.diagrams.model_file import load_model
from symtensor.diagrams.size import lower_bound
from symtensor.diagrams.theories import ALIASES, THEORIES, theory

__all__ = ["main", "named_model"]

PROGRAM = "symtensor diagrams"
#: More diagrams than this are listed, and more than that counted, only when told to.
LISTED, COUNTED = 200_000, 10**8


def main(arguments: Sequence[str]) -> int:
    """Run `symtensor diagrams` with `arguments`; returns the exit status, raises RequestError and ModelError."""
    if any(argument in ("-h", "--help") for argument in arguments):
        print(_parser().format_help(), end="")
        return 0
    options = _parser().parse_args(list(arguments))
    _check(options)
    try:
        with _executor(options.jobs) as executor:
            return _run(options, executor)
    except IncompleteError as error:  # not the user's doing
        print(f"{PROGRAM}: verification failed, please report this: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        kept = f"; nothing was written to {options.out}" if options.out else ""
        print(f"{PROGRAM}: interrupted{kept}", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace, executor: Executor | None) -> int:
    model = named_model(options.model)
    _take_defaults(options, model)
    try:
        asked = enumerate_diagrams(
            model, options.legs, options.loops, kind=options.kind, orders=options.bound, labelled=not options.unlabelled,
            causality=options.causality, irreducible=options.irreducible, dressed=options.order, executor=executor,
            no_tadpoles=options.no_tadpoles, no_self_loops=options.no_self_loops, no_snails=options.no_snails,
            no_self_energies=options.no_self_energies,
        )  # fmt: skip
    except InfiniteRequestError as error:
        raise InfiniteRequestError(f"{error}; on the command line: --loops 2, --bound NAME=LOW:HIGH") from None
    if not options.force:
        _refuse_enormous(asked, options)
    _compile()
    return _count(asked, options) if options.count else _list(asked, options)


def _check(options: argparse.Namespace) -> None:
    """Refuse options that contradict each other, before any work."""
    if options.order is not None and not options.dressed:
        raise RequestError("--order is the order in 1/N of --dressed diagrams; add --dressed, or use --loops or --bound")
    if options.count and (options.out or options.limit is not None):
        raise RequestError(f"--count lists nothing, so {'--out' if options.out else '--limit'} has no meaning; leave one out")
    for name, least in (("limit", 0), ("jobs", 1)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise RequestError(f"--{name} {value}: it must be {least} or more")
    if options.out is not None:
        if not options.out.strip():
            raise RequestError("--out needs the name of a folder, got an empty text")
        check_folder(Path(options.out))


def _take_defaults(options: argparse.Namespace, model: Model) -> None:
    """Fill in legs, loops, class, order in 1/N, and say on the error stream which were taken."""
    taken = []
    if options.kind is None:
        options.kind = "connected"
        taken.append("--class connected")
    if options.legs is None:
        options.legs = "0" if options.kind == "vacuum" else _default_legs(model, options.kind)
        taken += [f"--legs {options.legs}"] if options.kind != "vacuum" else []
    if options.dressed and options.order is None:
        options.order = 1
        taken.append("--order 1")
    elif not options.dressed and options.loops is None and not options.bound:
        options.loops = 2
        taken.append("--loops 2")
    if taken:
        print(f"{PROGRAM}: not given, so taken: {' '.join(taken)}", file=sys.stderr)


def _default_legs(model: Model, kind: str) -> str:
    """The propagator of the first field; for vertex functions with response fields the self-energy x, xt."""
    first = next((f for f in model.fields if not f.response and not f.conjugate), model.fields[0])
    for p in model.propagators:
        directed = model.tail(p) is not None and (kind == "1pi" or not model.is_response(p))
        if directed and first.name in (p.first, p.second):
            return f"{p.first}:1,{p.second}:1"
    return "2" if len(model.fields) == 1 else f"{first.name}:2"


def named_model(name: str) -> Model:
    """The named theory, or the model in the file `name`; raises ModelError if there is neither."""
    if name.lower() in THEORIES or name.lower() in ALIASES:
        return theory(name)
    path = Path(name)
    if path.suffix != ".toml" and not path.is_file():
        raise ModelError(f"unknown model {name!r}; named models: {', '.join(THEORIES)}; or give a model file (.toml)")
    try:
        return load_model(path)
    except OSError as error:
        raise ModelError(f"model file {name}: cannot be read ({error.strerror or error})") from None


# --- size ---------------------------------------------------------------------------------------------------------------


def _refuse_enormous(asked: DiagramSet, options: argparse.Namespace) -> None:
    if options.limit is not None and not options.verify:
        return
    weight = lower_bound(asked.request)
    if weight is None:
        return
    what = f"at least {_rounded(weight)} diagrams answer this (by their generating function)"
    if weight > (LISTED if options.verify else COUNTED) and (options.count or options.verify):
        cost = "--verify keeps all of them in memory" if options.verify else "counting goes through all of them"
        raise RequestError(f"{what}; {cost}. Ask for fewer loops, or insist with --force")
    if weight > LISTED and not options.count:
        raise _too_many(what, weight)


def _too_many(what: str, weight: Fraction | int) -> RequestError:
    count = "" if weight > COUNTED else "count them with --count, "
    return RequestError(
        f"{what}; more than {LISTED:,} are not listed unasked: {count}see the first with --limit 100, or insist with --force"
    )


def _rounded(value: Fraction) -> str:
    whole = -(-value.numerator // value.denominator)
    text = str(whole)
    return f"{whole:,}" if len(text) < 10 else f"{text[0]}.{text[1:3]}e{len(text) - 1}"


def _at_most(asked: DiagramSet, limit: int | None, force: bool) -> Iterator[Diagram]:
    """The diagrams; more than may be listed are refused before the first comes out."""
    if force or limit is not None:
        yield from asked
        return
    found = deque(itertools.islice(asked, LISTED + 1))
    if len(found) > LISTED:
        raise _too_many(f"more than {LISTED:,} diagrams answer this", LISTED)
    while found:  # a diagram that is used keeps its graph, so none is kept after its use
        yield found.popleft()


def _compile() -> None:
    """Compile (or load) the kernel on a tiny request, so that it is not timed with the answer."""
    from symtensor.diagrams.kernel.search import advance

    start = time.perf_counter()
    enumerate_diagrams("on", "phi:2", dressed=1).tally()
    seconds = time.perf_counter() - start
    if seconds > 1 and sum(advance.stats.cache_misses.values()):
        print(f"{PROGRAM}: compiled the kernel in {seconds:.1f} s (once; cached)", file=sys.stderr)


# --- answers ------------------------------------------------------------------------------------------------------------


def _split(asked: DiagramSet) -> tuple[tuple[str, ...], dict[tuple[int, ...], Tally]]:
    """The tallies by order in 1/N and index loops, or by index loops where the model has no order in 1/N."""
    model = asked.request.model
    if not any(f.index for f in model.fields):
        return (), {}
    try:
        check_dressed(model)
    except RequestError:
        return ("index_loops",), {(loops,): tally for loops, tally in asked.by_index_loops().items()}
    return ("order", "index_loops"), dict(asked.by_one_over_n())


def _count(asked: DiagramSet, options: argparse.Namespace) -> int:
    start = time.perf_counter()
    with _spinner("counting"):
        names, by = _split(asked)
        total = sum(by.values(), Tally(0, Fraction(0))) if by else asked.tally()
    answer: dict[str, Any] = {"count": total.count, "weight": str(total.weight), "seconds": round(time.perf_counter() - start, 6)}
    if names:
        answer["by"] = [
            {**dict(zip(names, key)), "count": tally.count, "weight": str(tally.weight)} for key, tally in by.items()
        ]
    if not total.count:
        answer["reason"] = _reason(asked)
    if options.verify:
        answer["verified"] = _proof(asked)
    if options.json:
        print(json.dumps(answer))
        return 0
    print(asked.request)
    for key, value in answer.items():
        if key != "by":
            print(f"  {key:<8} {value}")
    for row in answer.get("by", ()):
        print("  " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in row.items()))
    return 0


def _list(asked: DiagramSet, options: argparse.Namespace) -> int:
    proof = _proof(asked) if options.verify else None
    diagrams = _watched(_at_most(asked, options.limit, options.force))
    if options.out:
        folder = Path(options.out)
        count, weight = write_folder(folder, asked, diagrams, options.limit, proof)
        summary = {"count": count, "weight": str(weight), "out": str(folder)}
        text = f"{asked.request}\n{count} diagrams, sum of weights {weight}\nwrote {folder / 'index.html'} (open it in a browser)"
        print(json.dumps(summary) if options.json else text)
    elif options.json:
        write_document(sys.stdout, asked, diagrams, options.limit, proof)
        return 0
    else:
        count = _print_list(asked, diagrams, options.limit)
    if not options.json:
        if not count and options.limit != 0:
            print(f"none: {_reason(asked)}")
        if proof:
            print(f"verified: {proof}")
    return 0


def _print_list(asked: DiagramSet, diagrams: Iterator[Diagram], limit: int | None) -> int:
    count, weight, more = 0, Fraction(0), False
    first = next(diagrams, None)  # a list that is too long is refused here, before anything is printed
    print(asked.request)
    for diagram in itertools.chain([] if first is None else [first], diagrams):
        if limit is not None and count == limit:
            more = True
            break
        count += 1
        weight += diagram.weight
        print(f"{count:>6}  {diagram.weight!s:>8}  {diagram.canonical or '1 (the empty diagram)'}")
    left = f" (the first {count}; there are more)" if more else ""
    print(f"{count} diagram{'' if count == 1 else 's'}, sum of weights {weight}{left}")
    if count:
        print("pictures: add --out DIR")
    return count


def _reason(asked: DiagramSet) -> str:
    filters = ", ".join(name.replace("_", " ") for name in asked.request.filters)
    return asked.empty_reason or f"the search found no diagram{f' with {filters}' if filters else ''}"


def _proof(asked: DiagramSet) -> str:
    with _spinner("verifying"):
        return str(asked.verify())


# --- terminal -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _executor(jobs: int | None) -> Iterator[Executor | None]:
    """Threads do: the kernel releases the interpreter's lock."""
    if jobs is None or jobs == 1:
        yield None
        return
    pool = ThreadPoolExecutor(jobs)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _spinner(label: str) -> Iterator[None]:
    """The time that has passed, on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(label, total=None)
        yield


def _watched(diagrams: Iterable[Diagram]) -> Iterator[Diagram]:
    """Count what passes on a terminal, unless the list goes to it anyway."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield from diagrams
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("diagrams"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        for diagram in diagrams:
            yield diagram
            bar.advance(task)


# --- arguments ----------------------------------------------------------------------------------------------------------


class _Bound(argparse.Action):
    """Collects NAME=K and NAME=LOW:HIGH, given several times or separated by commas."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        bounds = dict(getattr(namespace, self.dest) or {})
        for part in str(values).split(","):
            match = re.fullmatch(r"\s*(\w+)\s*=\s*(-?\d+)\s*(?::\s*(-?\d+))?\s*", part)
            if match is None:
                raise RequestError(f"--bound {part!r} is neither NAME=K nor NAME=LOW:HIGH, as in g=4 or g=0:4")
            if match[1] in bounds:
                raise RequestError(f"--bound: {match[1]} is bounded twice; write one NAME=LOW:HIGH")
            bounds[match[1]] = (int(match[2]), int(match[3] or match[2]))
        setattr(namespace, self.dest, bounds)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM, usage=USAGE, description=DESCRIPTION, epilog=EPILOG, formatter_class=Formatter,
        allow_abbrev=False, add_help=False,
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="a named theory or a model file")
    ask = parser.add_argument_group("what is asked for").add_argument
    ask("--legs", metavar="LEGS", help="a number, or x:2,xt:0 for several fields (default: the propagator of the first field)")
    ask("--loops", type=int, metavar="L", help="loop order, lines - nodes + 1 (default: 2 if nothing else bounds)")
    ask("--class", dest="kind", choices=("all", "connected", "1pi", "vacuum"), help="class of diagrams (default: connected)")
    ask("--bound", action=_Bound, metavar="NAME=LOW:HIGH", help="bound the power of a counting parameter; may be repeated")
    ask("--unlabelled", action="store_true", help="legs of one field may be exchanged")
    ask("--irreducible", type=_names, metavar="x-xt,..", help="with --class 1pi: only these propagators may be no bridge")
    ask("--causality", choices=("local", "nonlocal", "none"), help="rule for response loops (default: the model's)")
    ask("--dressed", action="store_true", help="1/N mode: auxiliary line dressed by the bubble chain")
    ask("--order", type=int, metavar="K", help="order in 1/N, with --dressed (default: 1)")
    leave = parser.add_argument_group("what is left out").add_argument
    for name in ("tadpoles", "self-loops", "snails", "self-energies"):
        leave(f"--no-{name}", action="store_true", help=f"no diagrams with {name} (below)")
    answer = parser.add_argument_group("answer").add_argument
    answer("--count", action="store_true", help="count and sum of weights only")
    answer("--verify", action="store_true", help="prove from generating functions that nothing is missing")
    answer("--json", action="store_true", help="machine-readable: with --count one line, otherwise a document")
    answer("--out", metavar="DIR", help="write diagrams.json, index.html, sheet.svg and a picture of each diagram")
    answer("--limit", type=int, metavar="N", help="list only the first N diagrams")
    answer("--jobs", type=int, metavar="N", help="threads (default: 1); the order of the list is the same")
    answer("--force", action="store_true", help=f"list more than {LISTED:,} diagrams, count more than 10^8")
    return parser
