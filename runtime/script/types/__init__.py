"""Types of programs, read from annotations and Python classes."""
