"""Benchmarks: ``python -m tests.bench [NAME …]`` prints figures; no test asserts a time."""
