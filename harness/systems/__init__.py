"""Registries in the form that the engine explores."""
