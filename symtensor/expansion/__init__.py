"""Expansions: lazy series with O-terms, Taylor with remainder, Wick and Price, Taylor expansion of a functional."""

from __future__ import annotations

from .expand import ExpansionError, Sector, sectors, series
from .functional import FunctionalTaylor, IntegralRemainder, functional_taylor
from .intervals import EnclosureError
from .order_term import OrderDivisionError, OrderTerm
from .price import ExpectationFamily, directional_derivative
from .remainder import NthDerivative, Remainder, RemainderBound, SymbolicOrderError
from .scale import LimitPointError, Scale, ScaleError
from .series import Series, UnknownCoefficientError
from .series_algebra import UndecidedZeroWarning, ZeroSeriesError
from .taylor import TaylorSeries, taylor
from .wick import average, covariance, gaussian_average

__all__ = [
    "EnclosureError",
    "ExpansionError",
    "ExpectationFamily",
    "FunctionalTaylor",
    "IntegralRemainder",
    "LimitPointError",
    "NthDerivative",
    "OrderDivisionError",
    "OrderTerm",
    "Remainder",
    "RemainderBound",
    "Scale",
    "ScaleError",
    "Sector",
    "Series",
    "SymbolicOrderError",
    "TaylorSeries",
    "UndecidedZeroWarning",
    "UnknownCoefficientError",
    "ZeroSeriesError",
    "average",
    "covariance",
    "directional_derivative",
    "functional_taylor",
    "gaussian_average",
    "sectors",
    "series",
    "taylor",
]
