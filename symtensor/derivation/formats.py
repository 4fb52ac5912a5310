"""Numbers as text for tables: as many digits as they deserve, never more precision than the standard error has."""

from __future__ import annotations

import math

MISSING = "–"


def number(value: float, digits: int = 6) -> str:
    """`value` with `digits` significant digits, trailing zeros kept; a dash where it is not known."""
    if math.isnan(value):
        return MISSING
    if value == 0:
        return "0"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if 1e-4 <= abs(value) < 10.0**digits:
        decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
        return f"{value:.{decimals}f}"
    return f"{value:.{digits - 1}e}"


def with_error(mean: float, se: float, short: bool = False) -> str:
    """`mean` and its standard error to two digits of the error: `14.605 ± 0.023`, or `14.605(23)` if `short`."""
    if math.isnan(mean):
        return MISSING
    if math.isnan(se) or se == 0 or math.isinf(se) or se < 1e-14 * abs(mean):
        return number(mean)
    decimals = 1 - math.floor(math.log10(se))
    if round(se, decimals) >= 10.0 ** (2 - decimals):  # rounding up has made a third digit
        decimals -= 1
    size = max(abs(mean), se)
    if not 1e-5 <= size < 1e7:
        power = math.floor(math.log10(size))
        places = max(decimals + power, 0)
        body = f"{mean / 10.0**power:.{places}f}"
        inside = round(se / 10.0**power * 10**places)
        return f"{body}({inside})e{power:+d}" if short else f"({body} ± {se / 10.0**power:.{places}f})e{power:+d}"
    places = max(decimals, 0)
    if not short:
        return f"{mean:.{places}f} ± {se:.{places}f}"
    return f"{mean:.{places}f}({round(se * 10**places)})"


def zscore(value: float) -> str:
    """A z-score to two decimals, fewer when it is large; a dash where it is not known."""
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1e4:
        return f"{value:.1e}"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
