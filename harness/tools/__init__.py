"""Import orders, and first scenarios of installed registries."""
