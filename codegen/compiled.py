"""A compiled function: the emitted module, and the checks and conversions of arguments around the call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symtensor.kernels import Argument, ArrayKernel, BatchKernel, FixedPointKernel, Kernel, OdeKernel, ScanKernel

from .call import Parameters, converted
from .module import GeneratedModule
from .signature import Signature

if TYPE_CHECKING:
    from .certify import Certificate
    from .export import Exported

__all__ = ["Compiled"]


@dataclass(frozen=True, slots=True, weakref_slot=True)  # jax.jit keeps weak references to functions
class Compiled:
    """What `symtensor.compile` returns: call it, read it, write it, check it, export it.

    Attributes
    ----------
    module
        The emitted module: its source, its kernels.
    name
        The function in it that a call runs.
    dtype
        The type of arguments and results; None: that of the arguments, JAX's default float for integers.

    Examples
    --------
    >>> import jax, sympy as sp, symtensor
    >>> jax.config.update("jax_enable_x64", True)
    >>> x, y = sp.symbols("x y", real=True)
    >>> f = symtensor.compile(sp.exp(x) * y, [x, y], name="growth")
    >>> float(f(0.0, 2)), f.name, f.module.kernels[0].name
    (2.0, 'growth', 'growth')
    """

    module: GeneratedModule
    name: str
    dtype: str | None = None
    _loaded: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    # -- calling -------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value, an array; a named tuple of arrays if there are several outputs.

        Arguments are arrays, nested lists or numbers, by position or name; integers become floats. Loops have parameters
        besides (depth; ts, rtol, atol, max_steps; tol, max_steps), by name.

        Raises
        ------
        CallError
            A missing or unknown argument, a shape that does not fit, a complex number for a real argument.
        ValueError
            float64 was asked for and JAX runs in float32.
        """
        given, extra = converted(self.parameters, args, kwargs)
        return self.function(*given, **extra)

    @property
    def function(self) -> Callable[..., Any]:
        """The jitted function of the emitted module itself: no checks, no conversions."""
        if "function" not in self._loaded:
            self._loaded["function"] = getattr(self.module.load(), self.name)
        return self._loaded["function"]

    @property
    def parameters(self) -> Parameters:
        """What a call is checked against."""
        if "parameters" not in self._loaded:
            self._loaded["parameters"] = Parameters.of(self)
        return self._loaded["parameters"]

    @property
    def signature(self) -> Signature:
        """Arguments and outputs with their shapes."""
        return self.module.signatures[self.name]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments in order."""
        return self.signature.arguments

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs in order."""
        return self.signature.outputs

    @property
    def kernel(self) -> Kernel:
        """The kernel that the function is emitted from."""
        return self._kernel(self.name)

    def _kernel(self, name: str) -> Kernel:
        return next(kernel for kernel in self.module.kernels if kernel.name == name)

    @property
    def unbatched(self) -> Kernel:
        """The kernel within a batch; the kernel itself if there is no batch."""
        kernel = self.kernel
        return self._kernel(kernel.inner) if isinstance(kernel, BatchKernel) else kernel

    @property
    def complex_arguments(self) -> frozenset[str]:
        """Arguments that are complex."""
        kernel = self.kernel
        return frozenset(part.argument for part in kernel.inputs if part.part) if isinstance(kernel, ArrayKernel) else frozenset()

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the parameters that loops take besides their arguments."""
        options = {
            ScanKernel: ("depth",), OdeKernel: ("ts", "rtol", "atol", "max_steps"), FixedPointKernel: ("tol", "max_steps"),
        }  # fmt: skip
        return options.get(type(self.unbatched), ())

    # -- text ----------------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The emitted module; the same input gives the same bytes."""
        return self.module.source

    def write(self, path: str | Path) -> Path:
        """Write the module into a folder, or to a file if the path ends in `.py`; returns the file."""
        return self.module.write(path)

    @property
    def cost(self) -> Any:
        """Operations before and after the passes, and what is expected of the compiler: a report."""
        from .cost import report

        return report(self.module)

    # -- checking and exporting ----------------------------------------------------------------------------------------

    def check(self, dtype: Any = None) -> Any:
        """The embedded self-check against 30-digit values; see `GeneratedModule.check`."""
        return self.module.check(dtype)

    def certify(self, n_points: int = 64, digits: int = 30, **options: Any) -> Certificate:
        """Agreement with mpmath on sampled points of the domain, value and gradient; see `codegen.certify.certify`."""
        from .certify import certify

        return certify(self, n_points, digits, **options)

    def export(self, platforms: Iterable[str] = ("cpu", "cuda", "tpu"), **options: Any) -> Exported:
        """StableHLO that runs elsewhere with JAX alone; see `codegen.export.export`."""
        from .export import export

        return export(self, platforms, **options)

    # -- display -------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        arguments = ", ".join(f"{each.name}{_shape(each)}" for each in self.arguments)
        outputs = ", ".join(f"{each.name}{_shape(each)}" for each in self.outputs)
        result = outputs if self.signature.record is None else f"{self.signature.record}({outputs})"
        return f"<compiled {self.name}({arguments}) -> {result}{f', {self.dtype}' if self.dtype else ''}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def _repr_html_(self) -> str:
        source = f"<details><summary>source</summary><pre>{escape(self.source)}</pre></details>"
        return f"<p><code>{escape(repr(self))}</code></p>{source}"


def _shape(argument: Argument) -> str:
    return f"[{', '.join(map(str, argument.shape))}]" if argument.shape else ""
