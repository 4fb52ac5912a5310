"""What a series leaves out beyond its last term, estimated from its last blocks of terms."""

from __future__ import annotations

import numpy as np

__all__ = ["block_terms", "tail_estimate"]

#: blocks of degrees shrink by this factor: algebraic decay is geometric from one to the next
_BLOCK = 0.9
#: fewest degrees in a block: two of either parity
_LEAST = 4
#: beyond this ratio of two blocks the series is taken not to converge
_SLOWEST = 0.995


def block_terms(degrees: np.ndarray, degree: int) -> np.ndarray:
    """Those of the degrees that :func:`tail_estimate` looks at."""
    return degrees[degrees > _blocks(degree)[0]]


def _blocks(degree: int) -> tuple[int, int]:
    """The degrees that the last two blocks start behind."""
    cut = min(int(_BLOCK * degree), degree - _LEAST)
    return max(0, min(int(cut * cut / max(degree, 1)), cut - _LEAST)), max(0, cut)


def tail_estimate(terms: np.ndarray) -> float:
    """sum_{n > N} terms_n of a series of terms that are not negative, n = 0..N.

    With the sums B1, B2 over the blocks (0.81 N, 0.9 N] and (0.9 N, N] the estimate is ``B2 r/(1 - r)``, r = B2/B1: exact in
    the limit of algebraic decay, too large for faster decay.

    Examples
    --------
    >>> n = np.arange(1.0, 2001.0)
    >>> round(tail_estimate(np.concatenate([[0.0], n**-2.5])), 7), round(2000**-1.5 / 1.5, 7)
    (7.5e-06, 7.5e-06)
    """
    before, cut = _blocks(len(terms) - 1)
    last, previous = float(terms[cut + 1 :].sum()), float(terms[before + 1 : cut + 1].sum())
    if last == 0.0:
        return 0.0
    ratio = min(last / previous, _SLOWEST) if previous > 0 else _SLOWEST
    return last * ratio / (1 - ratio)
