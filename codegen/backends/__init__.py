"""Where kernels are executed: emitted code in JAX; the input, before any pass, in mpmath and NumPy (the oracles)."""
