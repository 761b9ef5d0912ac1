"""The script compiler: from Python functions to graphs that run."""
