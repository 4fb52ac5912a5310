"""Joint cumulants along one path for one or several inputs: which method serves which pattern."""

from __future__ import annotations

from collections.abc import Sequence

from symtensor.activation import Activation
from symtensor.numerics.path.law import PathArray, PathLaw
from symtensor.numerics.path.one_input import LARGEST_ORDER, one_input_cumulants
from symtensor.numerics.path.several_inputs import PATTERNS, several_input_cumulants

__all__ = ["path_cumulants"]


def path_cumulants(
    law: PathLaw,
    functions: Sequence[Activation],
    pattern: tuple[int, ...],
    *,
    tol: float = 1e-10,
    modes: Sequence[int] | None = None,
    later_only: bool = False,
    memory_mb: float = 2048.0,
) -> PathArray:
    r"""Joint cumulants of h_c = f_r(phi_a) f_r(phi_b), c = r E + (a <= b), at q times and their derivatives in the variances.

    ``pattern = (a_1, .., a_q)``: cum(h_{c1}(phi_{l1}), .., h_{cq}(phi_{lq})) differentiated a_j times with respect to
    K_{l_j}, the variances at other times fixed:

        d/dK_m = (1/2) d_m^2 + sum_{t > m} alpha^{t-m} d_m d_t    (one input; Price's theorem on the path).

    At coinciding times the derivatives belong to the first of the legs; the array is 0 where a later one has any.

    Parameters
    ----------
    law
        The path.
    functions
        The functions f_r.
    pattern
        Derivatives at each leg. One input: one to four legs, at most five for legs and derivatives together (and six for
        two legs); several inputs: (1,), (2,), (0, 0), (0, 1), (1, 0).
    tol
        Error aimed at, relative to the largest entry.
    modes
        Keep only these degrees of the two-time expansion; patterns (0, 0), (0, 1), (1, 0).
    later_only
        For (0, 1): only l1 < l2, the rest 0.
    memory_mb
        Refuse to hold more than this.

    Returns
    -------
    PathArray
        values of shape (L+1, C) * q + (E,) * (number of derivatives), and their error.

    Raises
    ------
    PathNotConverged
        The error is above ``tol``; the values reached are in ``.array``.
    NotSquareIntegrableError, CovarianceError
        A cumulant does not exist, or a kernel is none.
    ValueError
        A pattern that is not done, or more memory than allowed (the need is stated).

    Examples
    --------
    >>> import numpy as np
    >>> from symtensor.activation import activation
    >>> law = PathLaw(np.array([[[1.0]], [[2.0]]]), 1.0)
    >>> x = [activation("identity")]
    >>> path_cumulants(law, x, (0, 0)).values[0, 0, 1, 0].round(12)  # 2 K_0^2
    np.float64(2.0)
    >>> path_cumulants(law, x, (0, 0, 0)).values[0, 0, 0, 0, 1, 0].round(12)  # 8 K_0^3
    np.float64(8.0)
    """
    pattern = tuple(pattern)
    if (modes is not None or later_only) and pattern not in ((0, 0), (0, 1), (1, 0)):
        option = f"modes = {list(modes)}" if modes is not None else "later_only"
        raise ValueError(f"{option} is for the patterns (0, 0), (0, 1) and (1, 0) of two times, not for {pattern}; leave it out")
    if law.inputs == 1 and modes is None:
        return one_input_cumulants(law, functions, pattern, tol=tol, later_only=later_only, memory_mb=memory_mb)
    if pattern not in PATTERNS:
        done = ", ".join(map(str, PATTERNS))
        raise ValueError(
            f"pattern {pattern} is done for one input only and the law has {law.inputs}; done for several are {done}: "
            f"take one input, or an order in 1/n that needs no more than two times (at most {LARGEST_ORDER} legs for one input)"
        )
    return several_input_cumulants(law, functions, pattern, tol=tol, modes=modes, later_only=later_only, memory_mb=memory_mb)
