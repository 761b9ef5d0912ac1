"""Random numbers: generators, the default generator, and its seed.

Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1,
2, 3", 2011) computes a block of four 32-bit numbers from a key and a counter.  The key
is the seed; a generator only counts blocks.  A kernel reserves its blocks and computes
block i from counter `offset + i`, so every device draws the same bits with any number
of threads.

Rules:
- only `take` advances the counter, under a lock;
- a generator on a device without its own state draws the same numbers as on the CPU;
- `default_generator` is one object for the whole process.
"""

from operator import index as as_int
from typing import Any

from everyorder.runtime.base.locks import reentered
from everyorder.runtime.errors.tensor import (
    ArithmeticRefused,
    NotReplaceable,
    UnfitValue,
)
from everyorder.runtime.schema.annotation import register_annotation
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.types import GeneratorType

__all__ = ["Generator", "default_generator", "manual_seed"]

# torch's default seed.
DEFAULT_SEED = 67280421310721

# A seed is the key of Philox, two words of 32 bits; so is the low half of a counter.
_SEEDS = 2**64
# The least seed: negative seeds count from the end, as in torch.
_LEAST = -(2**63)


class Generator:
    """A seed and the number of blocks drawn with it."""

    __slots__ = ("__weakref__", "_lock", "_offset", "_seed", "device")

    def __init__(self, device: Device | str = "cpu", seed: int = DEFAULT_SEED) -> None:
        self.device = device if isinstance(device, Device) else Device.parse(device)
        self._lock = reentered()
        self._offset = 0
        self._seed = 0
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> "Generator":
        """Restart with `seed`.

        Raises:
            ArithmeticRefused: the seed does not fit 64 bits.
            UnfitValue: the seed is not an integer.
        """
        try:
            seed = as_int(seed)
        except TypeError:
            raise UnfitValue(
                asked="manual_seed", found=f"a {type(seed).__name__}", fits="an integer"
            ) from None
        if not _LEAST <= seed < _SEEDS:
            raise ArithmeticRefused(
                code="NumberTooLarge",
                value=str(seed) if seed.bit_length() < 512 else "a longer number",
                dtype="seed",
                smallest=_LEAST,
                largest=_SEEDS - 1,
            )
        with self._lock:
            self._seed, self._offset = seed % _SEEDS, 0
        return self

    def seed(self) -> int:
        """Restart with a seed from the operating system, and return it."""
        from secrets import randbits

        drawn = randbits(63)
        self.manual_seed(drawn)
        return drawn

    def initial_seed(self) -> int:
        """Return the seed that the generator was started with."""
        return self._seed

    def take(self, blocks: int) -> tuple[int, int]:
        """Reserve `blocks` blocks; return the seed and the counter of the first block.

        Counters are 64 bits wide and wrap around.
        """
        assert blocks >= 0, "kernels count their blocks"
        with self._lock:
            first = self._offset
            self._offset = (first + blocks) % _SEEDS
            return self._seed, first

    def get_state(self) -> tuple[int, int]:
        """Return the seed and the number of blocks drawn, for `set_state`."""
        with self._lock:
            return self._seed, self._offset

    def set_state(self, state: tuple[int, int]) -> "Generator":
        """Continue from a state of `get_state`.

        Raises:
            NotReplaceable: `state` is not such a state.
        """
        match state:
            case (int(seed), int(offset)) if 0 <= seed < _SEEDS > offset >= 0:
                with self._lock:
                    self._seed, self._offset = seed, offset
            case _:
                raise NotReplaceable(code="BadState", found=repr(state)[:60])
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (str(self.device), self.get_state())

    def __repr__(self) -> str:
        return f"<Generator on {self.device}, seed {self._seed}, drawn {self._offset}>"


def _restored(device: str, state: tuple[int, int]) -> Generator:
    return Generator(device).set_state(state)


# Random operators without a generator draw from this one.
default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Restart `default_generator` with `seed`.  Raises as its `manual_seed`."""
    return default_generator.manual_seed(seed)


register_annotation(Generator, GeneratorType)
