"""What lowering produces: one small typed value per emitted function. Rendering turns them into text, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from symtensor.kernels import Argument
from symtensor.numerics.rules import Rule

from .graph import Node
from .passes.cse import Schedule
from .passes.tape import Tape

__all__ = [
    "Call",
    "CompositeFunction",
    "Contraction",
    "Function",
    "LoopFunction",
    "MomentFunction",
    "Operand",
    "Product",
    "ScalarFunction",
    "StageCall",
    "Summand",
    "TapeFunction",
    "TemplateFunction",
    "TensorFunction",
]


@dataclass(frozen=True, slots=True)
class StageCall:
    """`targets = function(*parameters)`, evaluated once; the function returns `plan.results`."""

    function: str
    parameters: tuple[str, ...]
    plan: Schedule
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """Elementwise expressions: the stages in order, then `outputs[k] = plan.results[k]`.

    `roots` are the optimised outputs before they were divided into stages.
    """

    name: str
    arguments: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    plan: Schedule
    title: str = ""
    stages: tuple[StageCall, ...] = ()
    roots: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class TapeFunction:
    """Elementwise expressions run as a tape; `outputs[k]` is result k of it."""

    name: str
    arguments: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    tape: Tape
    title: str = ""
    roots: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Operand:
    """`local = source[fixed]` with its axes at the places of these letters in the output: "ba->abef".

    `source` is an argument or an earlier local; for a Kronecker delta it is None and `size` is the text of its size.
    `image`, if any, is an elementwise function applied first (its graph in the variable `source`).
    """

    local: str
    source: str | None
    letters: str
    fixed: tuple[int | None, ...] = ()
    size: str = ""
    image: Node | None = None


@dataclass(frozen=True, slots=True)
class Contraction:
    """`local = einsum(letters[0],letters[1]->output, *operands)`: one pairwise step (or one operand summed).

    `pairs` are pairs of letters in which the operands that have them are symmetric; at least one is summed over.
    `extents` are the dimensions of the letters, names or numbers.
    """

    local: str
    operands: tuple[str, ...]
    letters: tuple[str, ...]
    output: str
    pairs: tuple[str, ...] = ()
    extents: tuple[tuple[str, str | int], ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """A product of locals, each broadcast to the output axes."""

    factors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summand:
    """`coefficient * sum_k number_k * (sum of products)_k`, the coefficient a scalar of the arguments."""

    coefficient: Node
    parts: tuple[tuple[Node, tuple[Product, ...]], ...]


@dataclass(frozen=True, slots=True)
class TensorFunction:
    """A sum of broadcast products of arrays and pairwise contractions.

    `mirrored` is a sum X of which X + X with the halves of its axes exchanged is part of the result; `half` is its local.
    """

    name: str
    arguments: tuple[Argument, ...]
    axes: str
    loads: tuple[Operand, ...]
    contractions: tuple[Contraction, ...]
    spreads: tuple[Operand, ...]
    summands: tuple[Summand, ...]
    shape: tuple[str, ...]
    covered: bool
    title: str = ""
    mirrored: tuple[Summand, ...] = ()
    half: str = ""

    @property
    def exchange(self) -> tuple[int, ...]:
        """The first and the second half of the axes exchanged."""
        size = len(self.axes) // 2
        return (*range(size, 2 * size), *range(size))


Method: TypeAlias = Literal["inside", "hermite", "closed", "homogeneous"]


@dataclass(frozen=True, slots=True)
class MomentFunction:
    """Weak moments of one activation: `value` is sigma(x); `plan` the derivative tower (inside) or the closed forms.

    `tables` are the orders of the output, `orders` those evaluated per pair (with the mirrored ones).
    """

    name: str
    activation: str
    latex: str
    tables: tuple[tuple[int, int], ...]
    orders: tuple[tuple[int, int], ...]
    method: Method
    rule: Rule
    value: Schedule
    plan: Schedule | None
    kinks: tuple[Node, ...] = ()
    collinear: tuple[Node, ...] = ()
    title: str = ""

    @property
    def degree(self) -> int:
        """Highest order i + j."""
        return max(i + j for i, j in self.tables)


@dataclass(frozen=True, slots=True)
class Call:
    """`targets = function(*arguments)`."""

    targets: tuple[str, ...]
    function: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompositeFunction:
    """Calls in sequence, then a named tuple of locals."""

    name: str
    arguments: tuple[Argument, ...]
    calls: tuple[Call, ...]
    returns: tuple[Argument, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class LoopFunction:
    """A scan over depth or an integration: the step, its state (argument, returned name) and what else it records.

    `passed` are the names that the step is called with: the arguments, and the time `time` if the step depends on it.
    """

    name: str
    kind: Literal["scan", "ode"]
    step: str
    arguments: tuple[Argument, ...]
    carry: tuple[tuple[str, str], ...]
    records: tuple[str, ...]
    outputs: tuple[Argument, ...]
    title: str = ""
    passed: tuple[str, ...] = ()
    time: str = ""


@dataclass(frozen=True, slots=True)
class TemplateFunction:
    """A function with a template of its own, filled with `values`; `parameters` and `documented` come after the arguments.

    `needs` lists what the text refers to: lax, partial, Callable, NamedTuple (it defines its record), and the shared
    helpers: floats (the cast), safe (_sqrt, _ratio), stacked.
    """

    name: str
    template: str
    arguments: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    values: Mapping[str, Any]
    needs: frozenset[str] = frozenset()
    parameters: tuple[str, ...] = ()
    documented: tuple[Argument, ...] = ()
    title: str = ""


Function: TypeAlias = (
    "ScalarFunction | TapeFunction | TensorFunction | MomentFunction | CompositeFunction | LoopFunction | TemplateFunction"
)
