"""Error rates of the verification protocol, by simulation, against naive alternatives on the same data.

    python benchmarks/verify_rates.py                    the table of docs/verify.md: a few minutes on one core
    python benchmarks/verify_rates.py --quick            one tenth of the replicates
    python benchmarks/verify_rates.py --docs             write the tables into docs/verify.md, between its markers

8 jittered sizes in 2^5..2^12 for every replicate. C consistent, N not tight, V violated, I inconclusive; rates with
binomial standard errors. `published` is the table of the specification.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import stats

from symtensor.verify import LAWS, Law, Rates, jittered_sizes, measure_rates, measure_sequential

#: rates of the specification at S = 200, 1000, 5000
PUBLISHED: dict[str, tuple[str, str, str]] = {
    "vector": ("C 1.00", "C 1.00", "C 1.00"),
    "wishart": ("C .99 I .01", "C 1.00", "C 1.00"),
    "maximum": ("C 1.00", "C 1.00", "C 1.00"),
    "cauchy": ("I .98 C .02", "I .84 C .16", "I .91 C .09"),
    "two-points": ("I .90 C .08 V .02", "I .92 C .05 V .03", "I .95 C .02 V .03"),
    "vector-loose": ("N 1.00", "N 1.00", "N 1.00"),
    "log-slack": ("C .92 I .07 N .01", "C .975 N .025", "C 1.00"),
    "log-missing": ("I .88 V .12", "V .51 I .49", "V .98 I .02"),
    "power": ("V .67 I .33", "V 1.00", "V 1.00"),
    "rare": ("I .89 C .11", "C .85 I .15", "C .94 I .06"),
}
SAMPLES = (200, 1000, 5000)
LETTERS: dict[str, str] = dict(zip(("consistent", "not tight", "violated", "inconclusive"), "CNVI"))


def shown(rates: Rates) -> str:
    """`C .985(6) I .015(6)`: rates with the standard error in the last digit, zeros left out."""
    ordered = sorted(((rate, name) for name, rate in rates.verdicts.items() if rate > 0), reverse=True)
    return " ".join(f"{LETTERS[name]} {_rate(rate)}({max(round(1000 * rates.error(name)), 1)})" for rate, name in ordered)


def _rate(rate: float) -> str:
    return f"{rate:.3f}".removeprefix("0")


def replicates(law: str, samples: int, share: float) -> int:
    """1000 for the row whose power is required, 400 otherwise, 100 at S = 5000; `share` of it."""
    full = 100 if samples == 5000 else 1000 if law == "log-missing" else 400
    return max(20, round(full * share))


def rows(share: float) -> Iterator[str]:
    """The table, row by row, as it is measured."""
    yield "| truth | claimed f | S = 200 | S = 1000 | S = 5000, with q99 | published |"
    yield "|---|---|---|---|---|---|"
    for key, law in LAWS.items():
        yield _row(law, key, share, jumps=True)
        if key == "two-points":
            yield _row(law, key, share, jumps=False)


def _row(law: Law, key: str, share: float, jumps: bool) -> str:
    cells = []
    for samples in SAMPLES:
        levels = (0.5, 0.9, 0.99) if samples == 5000 else (0.5, 0.9)
        found = measure_rates(law, samples, replicates(key, samples, share), levels=levels, seed=samples, jumps=jumps)
        dependent = f", level-dep {_rate(found.level_dependent)}" if key == "power" else ""
        cells.append(shown(found) + dependent)
    name = law.name if jumps else "the same, without the jump rule (`jumps=False`)"
    return f"| {name} | {law.claim} | {' | '.join(cells)} | {'; '.join(PUBLISHED[key])} |"


def sequential_rows(share: float) -> Iterator[str]:
    """Sequential use with spending: looks at 250, 500, 1000, 2000, 4000."""
    yield "| truth | claimed f | verdicts | mean samples per size | decided at the first look |"
    yield "|---|---|---|---|---|"
    for key, law in LAWS.items():
        found = measure_sequential(law, max(20, round(200 * share * (5 if key in ("log-missing", "two-points") else 1))), seed=11)
        yield f"| {law.name} | {law.claim} | {shown(found.rates)} | {found.mean_samples:.0f} | {_rate(found.first_look)} |"


def naive(law: Law, replicates: int, samples: int = 200, seed: int = 3) -> dict[str, float]:
    """How often three usual tests reject O(f): one-sided t-test, bare slope, ratio of the ends.

    t-test : slope of log(mean / f) against log n over all sizes, 5 %; slope : slope of log(median / f) over the upper
    half above .05; ratio : median/f at the largest size over that at the smallest above 2.
    """
    sizes = np.array([jittered_sizes(seed=seed * 1_000_003 + k) for k in range(replicates)], dtype=float)
    values = law.draw(np.random.default_rng(seed), sizes, samples)
    x, f = np.log(sizes), np.log(law.scale(sizes))
    mean, median = np.log(values.mean(-1)) - f, np.log(np.median(values, axis=-1)) - f
    slope, error = _least_squares(x, mean)
    bare, _ = _least_squares(x[:, 4:], median[:, 4:])
    return {
        "t-test": float(np.mean(slope / error > stats.t.ppf(0.95, x.shape[1] - 2))),
        "slope": float(np.mean(bare > 0.05)),
        "ratio": float(np.mean(median[:, -1] - median[:, 0] > np.log(2))),
    }


def _least_squares(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centred = x - x.mean(axis=1, keepdims=True)
    norm = (centred**2).sum(axis=1)
    slope = (centred * y).sum(axis=1) / norm
    residual = y - y.mean(axis=1, keepdims=True) - slope[:, None] * centred
    return slope, np.sqrt((residual**2).sum(axis=1) / (x.shape[1] - 2) / norm)


def naive_rows(share: float) -> Iterator[str]:
    """The naive tests where O(f) is true, and where it is false by a power 0.7 of a logarithm."""
    yield "| truth | claimed f | t-test, log mean | bare slope > .05 | end-point ratio > 2 | protocol, S = 200 |"
    yield "|---|---|---|---|---|---|"
    slow = Law("(log n)^0.7 abs(g)", _slow, "sqrt(n)", np.sqrt, "false")
    for law in (LAWS["vector"], LAWS["maximum"], LAWS["cauchy"], slow):
        count = max(20, round(1000 * share))
        found = naive(law, count)
        protocol = shown(measure_rates(law, 200, count, seed=3))
        yield f"| {law.name} | {law.claim} | " + " | ".join(_rate(rate) for rate in found.values()) + f" | {protocol} |"


def _slow(rng: np.random.Generator, n: np.ndarray, samples: int) -> np.ndarray:
    return LAWS["vector"].draw(rng, n, samples) * np.log(n)[..., None] ** 0.7


def periodic(period: int, centre: float) -> Law:
    """(1 + (n mod period)/period) (centre + |Z|): of order 1, and no smooth function of n."""

    def draw(rng: np.random.Generator, n: np.ndarray, samples: int) -> np.ndarray:
        return (1 + n % period / period)[..., None] * (centre + LAWS["vector"].draw(rng, np.ones_like(n), samples))

    norm = f"({centre:g} + abs(Z))" if centre else "abs(Z)"
    return Law(f"(1 + (n mod {period})/{period}) {norm}", draw, "1", np.ones_like, "true")


def scattered(width: float) -> Law:
    """exp(width Z_n) |Z| with one Z_n for each n: of order 1 in probability, with as much scatter as one likes."""

    def draw(rng: np.random.Generator, n: np.ndarray, samples: int) -> np.ndarray:
        return np.exp(width * rng.standard_normal(n.shape))[..., None] * LAWS["vector"].draw(rng, np.ones_like(n), samples)

    return Law(f"exp({width:g} Z_n) abs(Z)", draw, "1", np.ones_like, "true")


#: true claims that scatter about every smooth curve in n
IRREGULAR = (periodic(7, 3), periodic(7, 0), periodic(3, 0), periodic(2, 0), scattered(0.1), scattered(0.2), scattered(0.4))


def irregular_rows(share: float) -> Iterator[str]:
    """Single looks and sequential use on laws that are irregular in n."""
    yield "| truth | claimed f | S = 200 | S = 1000 | sequential |"
    yield "|---|---|---|---|---|"
    for law in IRREGULAR:
        cells = [shown(measure_rates(law, samples, max(20, round(1000 * share)), seed=samples)) for samples in (200, 1000)]
        found = measure_sequential(law, max(20, round(500 * share)), seed=11)
        yield f"| {law.name} | {law.claim} | {' | '.join(cells)} | {shown(found.rates)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one tenth of the replicates")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/verify.md")
    options = parser.parse_args()
    share = 0.1 if options.quick else 1.0
    start = time.process_time()
    tables = {}
    for name, table in (("rates", rows), ("sequential", sequential_rows), ("irregular", irregular_rows), ("naive", naive_rows)):
        tables[name] = []
        for line in table(share):
            print(line, flush=True)
            tables[name].append(line)
        print()
    print(f"{time.process_time() - start:.0f} CPU seconds")
    if options.docs:
        path = Path(__file__).parents[1] / "docs" / "verify.md"
        text = path.read_text(encoding="utf-8")
        for name, lines in tables.items():
            body = f"<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- end {name} -->"
            text = re.sub(rf"<!-- {name} -->.*?<!-- end {name} -->", lambda _, body=body: body, text, flags=re.DOTALL)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
