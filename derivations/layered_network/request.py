"""What a run was asked: the request of resnet-kernel, the order in 1/n, and the network it describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from derivations.resnet_kernel.request import Request as KernelRequest
from derivations.resnet_kernel.request import read_request as read_kernel_request
from symtensor.activation import Activation
from symtensor.derivation.settings import OptionError, Settings
from symtensor.fields.layered import LayeredNetwork

__all__ = ["Request", "read_request"]


@dataclass(frozen=True, slots=True)
class Request:
    """`base` describes network, inputs and simulation; `order` is the order in 1/n."""

    base: KernelRequest
    order: int

    @property
    def network(self) -> LayeredNetwork:
        """The network as the field theory knows it."""
        return self.network_of(self.base.activation)

    def network_of(self, function: Activation, kernel: Any = None, refine: int = 1) -> LayeredNetwork:
        """The network with another activation, input kernel, or step dt / refine at the same depth time."""
        base = self.base
        alpha = base.alpha if refine == 1 or base.gamma is None else float(np.sqrt(1 - base.gamma * base.dt / refine))
        return LayeredNetwork.single(
            function, c_w=base.c_w, c_b=base.c_b, alpha=alpha, dt=base.dt / refine, depth=base.depth * refine,
            kernel=base.kernel if kernel is None else kernel,
        )  # fmt: skip

    def parameters(self, settings: Settings) -> Mapping[str, Any]:
        """Everything that decides the numbers, by option name."""
        return self.base.parameters(settings)

    def at_depth(self, depth: int) -> Request:
        """The same network with another number of layers."""
        return replace(self, base=replace(self.base, depth=depth))


def read_request(settings: Settings) -> Request:
    """Check all settings.

    Raises
    ------
    ValueError
        Naming the option, what was given, what is required.
    """
    base, order = read_kernel_request(settings), settings["order"]
    if order > 1 and base.inputs.count > 1:
        raise OptionError(
            f"--order {order} with {base.inputs.count} inputs: beyond order 1/n the path cumulants of three and more times are "
            "done for one input; give --n-inputs 1, a number as --kernel, or --order 1"
        )
    return Request(base, order)
