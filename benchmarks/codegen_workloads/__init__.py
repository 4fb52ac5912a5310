"""Workloads of `benchmarks/codegen.py`: each has the input, arrays, and a hand-written JAX function to compare with."""
