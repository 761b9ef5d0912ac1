"""The base: locks, generated functions, and extension points of all areas."""
