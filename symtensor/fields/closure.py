r"""Self-consistent closures: the two-particle irreducible expansion, solved for dressed lines and the mean.

Static:      G = (S''(m) - Sigma)^{-1},     S'(m) = tau.
Stochastic:  R = R0 + R0 Sigma_R R,     C = R (G G^T + Sigma_C) R^T,     f(m) + tau = 0.

Sigma (to `loops` loops) and tau (to `loops` + 1, so that both come from one functional of m and the lines) are sums of skeleton
diagrams whose lines are the solution itself; vertices are taken at the mean m. With `hartree`, one loop at one vertex only.
Exact at any coupling for what the diagrams kept resum: Hartree is the limit of many components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symtensor._codegen import codegen
from symtensor.fields._grid_network import Network, network
from symtensor.fields._grid_plan import ContractionPlan
from symtensor.fields._grid_program import GridProgram, sum_kernel
from symtensor.fields._jax_side import jax_side
from symtensor.fields._skeletons import dressed_theory, skeleton_terms
from symtensor.fields.diagram_sum import DiagramSum
from symtensor.fields.errors import TheoryError
from symtensor.fields.field_theory import FieldTheory
from symtensor.fields.term import Term
from symtensor.kernels import Argument, Assignment, CompositeKernel, ScalarKernel
from symtensor.numerics.iteration import Convergence, fixed_point

__all__ = ["SelfConsistent", "self_consistent"]

#: two-time arrays that a solution needs at once: those of Dyson's equation, and the history of the Anderson mixing
MATRICES = 40


@dataclass(frozen=True, eq=False)
class SelfConsistent:
    """A self-consistent solution; `report` says whether it converged.

    Attributes:
        mean: the mean of each field.
        correlator: C[t, i, s, j] at `times` (a static theory: the matrix G of connected two-point functions).
        response: R[t, i, s, j] for t >= s; None for a static theory.
        error: estimate of the error of C by the quadrature (0 for a static theory).
        change: of a stationary solution, how much C(t, t) still changes over the last tenth of the times.
    """

    theory: FieldTheory
    loops: int
    mean: np.ndarray
    correlator: np.ndarray
    response: np.ndarray | None
    times: np.ndarray
    error: float
    change: float
    report: Convergence

    @property
    def equal_time(self) -> np.ndarray:
        """<x_i x_j> - <x_i> <x_j> at the last time."""
        return self.correlator if self.response is None else self.correlator[-1, :, -1, :]

    def lagged(self) -> tuple[np.ndarray, np.ndarray]:
        """C(t) and R(t), arrays (T, n, n), for t = `times`: the later end is the last time of the grid."""
        if self.response is None:
            raise TheoryError(f"{self.theory.name} is a static theory: it has no time lags")
        backwards = np.arange(len(self.times))[::-1]
        return self.correlator[-1][:, backwards].transpose(1, 0, 2), self.response[-1][:, backwards].transpose(1, 0, 2)

    def __repr__(self) -> str:
        equal = self.equal_time.tolist()
        return f"<SelfConsistent {self.theory.name}, {self.loops} loops: mean {self.mean}, equal times {equal}; {self.report}>"


def self_consistent(
    theory: FieldTheory,
    loops: int = 1,
    *,
    values: Mapping[str, float] | None = None,
    times: Any = None,
    initial: Any = None,
    hartree: bool = False,
    tolerance: float = 1e-11,
    damping: float = 1.0,
    most: int = 200,
    memory_mb: float = 4096.0,
) -> SelfConsistent:
    """Solve for the mean and the dressed propagators.

    Args:
        loops: of the self-energy.
        values: a number for every parameter.
        times: of a stochastic theory: equidistant, from 0, an odd number of them. The state at 0 is the stationary one of the
            linear equation, and what the last times show is stationary if they are long enough (`change` tells); or `initial`.
        initial: covariance (n, n) of a Gaussian state at time 0 with the mean at the saddle, for the transient; only where the
            mean stays there.
        hartree: only one loop at one vertex.
        tolerance, damping, most: of `symtensor.numerics.iteration.fixed_point`.

    Raises: TheoryError for missing values, times that do not fit, too much memory, a mean that moves (with `initial`).
    Warns: NotConvergedWarning if no fixed point is reached.

    >>> import jax
    >>> from symtensor.fields import FieldTheory
    >>> jax.config.update("jax_enable_x64", True)
    >>> solution = self_consistent(FieldTheory.static("x^2/2 + g*x^4/24", "x"), values={"g": 4}, hartree=True)
    >>> solution.report.converged, round(float(solution.equal_time[0, 0]), 6)  # 1/G = 1 + g G/2
    (True, 0.5)
    """
    if isinstance(loops, bool) or not isinstance(loops, int) or loops < 1:
        raise TheoryError(f"loops={loops!r}: the self-energy has 1 loop or more")
    given = {str(name): float(value) for name, value in (values or {}).items()}
    names = {s.name for s in theory.parameters}
    if set(given) != names:
        have, need = (", ".join(sorted(each)) or "nothing" for each in (given, names))
        raise TheoryError(f"values are given for {have}; numbers are needed for {need}")
    options = {"tolerance": tolerance, "damping": damping, "most": most}
    if not theory.stochastic:
        return _static(theory, loops, given, hartree, options)
    return _stochastic(theory, loops, given, _times(times), initial, hartree, options, memory_mb)


def _start(theory: FieldTheory, given: Mapping[str, float]) -> np.ndarray:
    return np.array([float(sp.sympify(m).subs(given)) for m in theory.saddle])


def _kept(terms: Iterable[Term], hartree: bool) -> list[Term]:
    """The skeleton diagrams; of the Hartree approximation those with one vertex and one loop."""
    kept = [term for term in terms if not hartree or (term.loops == 1 and len(term.diagram.graph.vertices) == 1)]
    return [term for term in kept if not (_even(term.theory) and _has_odd_vertex(term))]


def _even(theory: FieldTheory) -> bool:
    """Whether changing the sign of all fields changes nothing: then the mean stays 0, and so do vertices with odd valence."""
    flipped: Any = {s: -s for s in (*theory.fields, *theory.responses)}
    return (theory.density.subs(flipped, simultaneous=True) - theory.density).expand() == 0


def _has_odd_vertex(term: Term) -> bool:
    valences = {tensor.name: len(tensor.legs) for tensor in term.theory.tensors(term.valence)}
    return any(valences[term.diagram.graph.nodes[node].name] % 2 for node in term.diagram.graph.vertices)


def _static(theory: FieldTheory, loops: int, given: Mapping[str, float], hartree: bool, options: Any) -> SelfConsistent:
    dressed, mean, lines = dressed_theory(theory)
    size = len(theory.fields)
    names = [s.name for s in theory.fields]
    at: Any = dict(zip(theory.fields, mean))
    force = [-theory.density.diff(s).subs(at, simultaneous=True) for s in theory.fields]
    outputs: list[tuple[str, Any]] = []
    for a in range(size):
        tadpoles = _kept(skeleton_terms(dressed, (names[a],), loops + 1), hartree)
        outputs.append((f"force_{a}", force[a] - sp.Add(*(term.expr for term in tadpoles))))
    for a in range(size):
        for b in range(a, size):
            sigma = sp.Add(*(term.expr for term in _kept(skeleton_terms(dressed, (names[a], names[b]), loops), hartree)))
            outputs.append((f"inverse_{a}_{b}", force[a].diff(mean[b]) - sigma))
    arguments = tuple(Argument(s.name, (), "parameter") for s in (*theory.parameters, *mean, *lines))
    kernel = ScalarKernel("equations", arguments, tuple((name, sp.expand(value)) for name, value in outputs))
    spec = codegen().ModuleSpec(f"{theory.name}_closure", "Self-consistent equations.", (kernel,), reference_points=False)
    equations = codegen().generate(spec).load().equations
    upper = np.triu_indices(size)

    def step(state: np.ndarray) -> np.ndarray:
        found = [float(value) for value in equations(*(given[s.name] for s in theory.parameters), *state)]
        inverse = np.zeros((size, size))
        inverse[upper] = found[size:]
        matrix = np.linalg.inv(inverse + np.triu(inverse, 1).T)
        return np.concatenate([state[:size] - matrix @ np.array(found[:size]), matrix[upper]])

    free = np.array(theory.free.covariance.subs(given).evalf().tolist(), float)
    _require_double()
    solution, report = fixed_point(step, np.concatenate([_start(theory, given), free[upper]]), **options)
    matrix = np.zeros((size, size))
    matrix[upper] = solution[size:]
    full = matrix + np.triu(matrix, 1).T
    return SelfConsistent(theory, loops, solution[:size], full, None, np.zeros(0), 0.0, 0.0, report)


def _require_double() -> None:
    jax_side("closure").require_double()


def _times(times: Any) -> np.ndarray:
    given = np.asarray(times if times is not None else [], float)
    steps = np.diff(given)
    odd = given.ndim == 1 and len(given) >= 9 and len(given) % 2 == 1
    if not odd or given[0] != 0 or not np.all(steps > 0) or np.ptp(steps) > 1e-9 * given[-1]:
        raise TheoryError("times=.. is to be an odd number (9 or more) of equidistant times from 0, as numpy.linspace(0, 20, 401)")
    return given


def _stochastic(
    theory: FieldTheory, loops: int, given: Any, times: np.ndarray, initial: Any, hartree: bool, options: Any, memory_mb: float
) -> SelfConsistent:
    _require_double()
    program, spec, mean = _program(theory, loops, hartree, len(times))
    program.require_memory(memory_mb)
    needed = 8e-6 * MATRICES * (len(times) * len(theory.fields)) ** 2
    if needed > memory_mb:
        size = f"{len(times)} times need about {needed:,.0f} MB"
        raise TheoryError(f"two-time arrays at {size}, more than memory_mb={memory_mb:,.0f}; take fewer times, or raise it")
    loaded = codegen().generate(spec).load()
    solutions = []
    for stride in (2, 1):
        solutions.append(_solved(theory, loaded, program, mean, given, times[::stride], initial, options))
    (coarse_mean, coarse, _), (fine_mean, fine, report) = solutions
    fine = tuple(array[::2, :, ::2] for array in fine)
    response, correlator = (a + (a - b) / 3 for a, b in zip(fine, coarse))
    error = float(np.max(np.abs(fine[1] - coarse[1])) / 3)
    equal = np.einsum("titi->ti", correlator)
    change = float(np.max(np.abs(equal[-1] - equal[int(0.9 * len(equal))])))
    mean_value = fine_mean + (fine_mean - coarse_mean) / 3
    return SelfConsistent(theory, loops, mean_value, correlator, response, times[::2], error, change, report)


def _program(theory: FieldTheory, loops: int, hartree: bool, points: int) -> tuple[GridProgram, Any, tuple[sp.Symbol, ...]]:
    """The generated functions: `linear` (drift, noise, force at a mean, vertices) and `energies` (tau and Sigma by component)."""
    dressed, mean, _ = dressed_theory(theory)
    fields, responses = [s.name for s in theory.fields], [s.name for s in theory.responses]
    groups: dict[str, list[Network]] = {}

    def add(name: str, legs: Sequence[str], most: int) -> None:
        for term in _kept(skeleton_terms(dressed, legs, most), hartree):
            found = network(term, pinned=False)
            if found is not None:
                groups.setdefault(name if len(term.legs.moments) == 2 or len(legs) == 1 else name + "_local", []).append(found)

    for a, response in enumerate(responses):
        add(f"tau_{a}", (response,), loops + 1)
        for b in range(len(fields)):
            add(f"causal_{a}_{b}", (response, fields[b]), loops)
            add(f"noise_{a}_{b}", (response, responses[b]), loops)
    plan = ContractionPlan(points)
    sums = tuple(sum_kernel(plan, name, group) for name, group in groups.items())
    total = DiagramSum.of(dressed, (responses[0], fields[0]), loops + 1, "1pi", None)
    program = GridProgram.with_sums(total, [each for group in groups.values() for each in group], plan, sums, True)
    zero = dict.fromkeys(theory.responses, 0)
    at = dict(zip(theory.fields, mean))
    force = [theory.density.diff(s).subs({**at, **zero}, simultaneous=True) for s in theory.responses]
    kernels = [*program.linear_kernels([("force", (len(fields),), force)]), *plan.kernels.values(), *sums]
    if sums:
        calls = [Assignment((k.name,), k.name, tuple(a.name for a in k.arguments)) for k in sums]
        returns = tuple(Argument(k.name, ("T",) * len(k.axes)) for k in sums)
        sequence = (*plan.calls, *calls)
        kernels.append(CompositeKernel("energies", program.arguments(), sequence, returns, "Skeleton diagrams."))
    name, statement = f"{theory.name}_closure", " ".join(theory.conventions)
    spec = codegen().ModuleSpec(name, "Skeleton diagrams.", tuple(kernels), statement=statement, reference_points=False)
    return program, spec, mean


def _solved(
    theory: FieldTheory,
    loaded: Any,
    program: GridProgram,
    mean: Sequence[sp.Symbol],
    given: Any,
    times: np.ndarray,
    initial: Any,
    options: Any,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], Convergence]:
    """Mean, (R, C) and the report on one grid."""
    size, points = len(theory.fields), len(times)
    advance = jax_side("closure").ClosureStep(
        loaded.linear, getattr(loaded, "energies", None), program.arrays, program.orders, tuple(s.name for s in mean), given,
        float(times[1] - times[0]), points, initial,
    )  # fmt: skip
    start = advance.start(_start(theory, given))
    step: Callable[[np.ndarray], np.ndarray] = advance
    solution, report = fixed_point(step, start, **options)
    if initial is not None and advance.mean_moves(solution):
        raise TheoryError(
            "the mean moves away from the saddle, which the transient solution does not follow; leave initial=.. out (the "
            "stationary state), or shift the variables so that the mean stays"
        )
    found, pair = advance.split(solution)
    return found, (np.asarray(pair[0]).reshape(points, size, points, size), np.asarray(pair[1])), report
