"""The derivatives of the operators of namespace `core`, by family."""
