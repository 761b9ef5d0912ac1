"""Functions and methods by which Python code calls the operators."""
