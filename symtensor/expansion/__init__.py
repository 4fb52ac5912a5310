"""Expansions: lazy series with O-terms, Taylor with remainder, Wick and Price, Taylor expansion of a functional,
moments and cumulants of Gaussians, perturbation series and effective actions in zero dimensions."""

from __future__ import annotations

from .cumulants import cumulants_from_moments, joint_cumulant, moments_from_cumulants
from .expand import ExpansionError, Sector, sectors, series
from .functional import FunctionalTaylor, IntegralRemainder, functional_taylor
from .intervals import EnclosureError
from .legendre import effective_action
from .moments import gaussian_moment, polynomial_moment, vector_moment
from .order_term import OrderDivisionError, OrderTerm
from .perturbation import CouplingSeries, perturbative_moments
from .price import ExpectationFamily, directional_derivative
from .remainder import NthDerivative, Remainder, RemainderBound, SymbolicOrderError
from .scale import LimitPointError, Scale, ScaleError
from .series import Series, UnknownCoefficientError
from .series_algebra import UndecidedZeroWarning, ZeroSeriesError
from .taylor import TaylorSeries, taylor
from .wick import average, covariance, gaussian_average

__all__ = [
    "CouplingSeries",
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
    "cumulants_from_moments",
    "directional_derivative",
    "effective_action",
    "functional_taylor",
    "gaussian_average",
    "gaussian_moment",
    "joint_cumulant",
    "moments_from_cumulants",
    "perturbative_moments",
    "polynomial_moment",
    "sectors",
    "series",
    "taylor",
    "vector_moment",
]
