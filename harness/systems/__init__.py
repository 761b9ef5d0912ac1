"""Registries as the engine sees them."""
