"""The command `symtensor verify DATA.csv --claim SCALE [options]`: the verdict on a user's own measurements.

Errors are raised, addressed to the user; `symtensor.cli` turns them into one message and exit status 2.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path

from symtensor.arguments import Parser
from symtensor.verify.data import read_csv
from symtensor.verify.errors import VerificationError
from symtensor.verify.result import Verification
from symtensor.verify.run import verify_samples

__all__ = ["CommandError", "main"]

PROGRAM = "symtensor verify"
_EPILOG = """\
data.csv
  A header line with the columns n and value, then one line per sample: the size and the norm measured there. Samples
  are independent, at least 4 sizes, not powers of two only; about 300 samples per size before anything is consistent.

claims
  Products of powers of n, log n, loglog n: "1", "sqrt(n)", "n^(2/3) log(n)", "1/sqrt(n)". Constant factors do not count.

verdict
  consistent      no quantile grows faster than the claim, within the tolerance n^delta, over the measured range
  not tight       all quantiles grow slower
  violated        some quantile grows faster
  inconclusive    the data decide none of these; the report says what would
  A verdict is about the measured sizes and levels only. What it cannot see is printed with it.

examples
  symtensor verify data.csv --claim "sqrt(n)"
  symtensor verify data.csv --claim "sqrt(n) log(n)" --kind Theta --out out/verdict
      also report.html, report.md, plot.svg, verdict.json
  symtensor verify data.csv --claim "n" --status upper
      the values are upper bounds of the norm, such as Frobenius norms

exit status
  0 done, whatever the verdict; 2 bad input. See also: docs/verify.md, symtensor --help"""


class CommandError(VerificationError):
    """The folder that the command was given cannot be used."""


def main(arguments: Sequence[str]) -> int:
    """Run `symtensor verify` with `arguments`; returns the exit status.

    Raises
    ------
    UsageError, CommandError, DataError, SizesError, ClaimError, ScaleError
        Bad input; the text is addressed to the user.
    """
    if any(argument in ("-h", "--help") for argument in arguments):
        print(_parser().format_help(), end="")
        return 0
    options = _parser().parse_args(list(arguments))
    out = None if options.out is None else _folder(Path(options.out))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = read_csv(options.data, options.size_column, options.value_column)
        result = verify_samples(
            table.sizes, table.values, options.claim, kind=options.kind, levels=options.levels, alpha=options.alpha,
            delta=options.delta, norm_status=options.status, label=options.label or Path(options.data).stem,
        )  # fmt: skip
    for warning in caught:
        if str(warning.message) not in result.warnings:
            print(f"{PROGRAM}: warning: {warning.message}", file=sys.stderr)
    print(json.dumps(result.to_dict(), indent=2) if options.json else result.text(), end="\n" if options.json else "")
    if out is not None:
        _write(out, result)
    return 0


def _folder(path: Path) -> Path:
    """Make the folder before any work, so that nothing is measured in vain."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--out {str(path)!r} cannot be made: {error.strerror or error}") from error
    return path


def _write(folder: Path, result: Verification) -> None:
    page = '<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><body>{body}</body></html>\n'
    has_plot = bool(result.levels)
    files = {
        "report.md": result.markdown(),
        "verdict.json": json.dumps(result.to_dict(), indent=2) + "\n",
        "report.html": page.format(title=escape(result.headline), body=result.html(figure=has_plot)),
    }
    if has_plot:
        files["plot.svg"] = result.svg() + "\n"
    try:
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"--out {str(folder)!r} cannot be written: {error.strerror or error}") from error


def _levels(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: numbers separated by commas are required, as in 0.5,0.9") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM, usage=f"{PROGRAM} DATA.csv --claim SCALE [options]", allow_abbrev=False, add_help=False, epilog=_EPILOG,
        description="Verify a claimed stochastic bound on measured norms.", formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("data", metavar="DATA.csv", help="columns n and value, one line per sample")
    ask = parser.add_argument_group("options").add_argument
    ask("--claim", required=True, metavar="SCALE", help='the scale f, for example "sqrt(n)"')
    ask("--kind", choices=("O", "Theta", "definite"), default="O", help="what is claimed (default: O)")
    ask("--levels", type=_levels, default=(0.5, 0.9), metavar="P,P", help="quantile levels (default: 0.5,0.9)")
    ask("--alpha", type=_number, default=0.05, metavar="A", help="error probability (default: 0.05)")
    ask("--delta", type=_number, metavar="D", help="tolerated slope (default: 0.7 / log n_c)")
    ask("--status", choices=("exact", "lower", "upper"), default="exact", help="what the values are (default: exact norms)")
    ask("--size-column", default="n", metavar="NAME", help="column of the sizes (default: n)")
    ask("--value-column", default="value", metavar="NAME", help="column of the norms (default: value)")
    ask("--label", metavar="TEXT", help="name of the norm in the report (default: the file's name)")
    ask("--json", action="store_true", help="print JSON instead of text")
    ask("--out", metavar="DIR", help="also write report.html, report.md, plot.svg, verdict.json there")
    return parser
