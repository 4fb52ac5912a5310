"""Workloads of `benchmarks/codegen`: each has the input, arrays, and a hand-written JAX function to compare with."""
