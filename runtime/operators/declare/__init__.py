"""Declarations of operators: checks, shapes, dtypes and outputs of a call."""
