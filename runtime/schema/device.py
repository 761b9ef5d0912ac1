"""Devices as values: a type and, where one is named, an index.

True only here: `cpu` has no index and differs from `cpu:0`, as upstream compares them.
Which types exist, and how a device is written, is the business of `runtime.keys`; a
new backend is named there and nothing changes here.
"""

from dataclasses import dataclass

from runtime.keys import key_of_device


@dataclass(frozen=True, slots=True)
class Device:
    """A device type such as `cuda`, with an index or None; prints `cuda:1`."""

    type: str
    index: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Device":
        """The device written as `type` or `type:index`.

        Raises `UnknownDevice` for a type that no backend has, and for another form.
        """
        key_of_device(text)
        kind, colon, index = text.partition(":")
        return cls(kind, int(index) if colon else None)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"
