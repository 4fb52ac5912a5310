"""Expansions: lazy series with O-terms, Taylor expansion with remainder."""

from __future__ import annotations

from .expand import ExpansionError, Sector, sectors, series
from .intervals import EnclosureError
from .order_term import OrderDivisionError, OrderTerm
from .remainder import NthDerivative, Remainder, RemainderBound, SymbolicOrderError
from .scale import LimitPointError, Scale, ScaleError
from .series import Series, UnknownCoefficientError
from .series_algebra import UndecidedZeroWarning, ZeroSeriesError
from .taylor import TaylorSeries, taylor

__all__ = [
    "EnclosureError",
    "ExpansionError",
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
    "sectors",
    "series",
    "taylor",
]
