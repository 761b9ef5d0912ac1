"""The base: the errors of the harness."""
