"""Random numbers: generators, the default one, and its seed."""

from runtime.tensors.generator import Generator, default_generator, manual_seed

__all__ = ["Generator", "default_generator", "manual_seed"]
