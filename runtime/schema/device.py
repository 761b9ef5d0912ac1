"""Devices as values: a type and, where one is named, an index.

True only here: `cpu` has no index and differs from `cpu:0`, as upstream compares them.
Which types exist, and how a device is written, is the business of `runtime.keys`; a
new backend is named there and nothing changes here.  There is one object for each
device, so that `is` compares them: the path of every call does.
"""

from typing import ClassVar, Self

from runtime.keys import key_of_device


class Device:
    """A device type such as `cuda`, with an index or None; prints `cuda:1`."""

    __slots__ = ("index", "type")

    type: str
    index: int | None

    # A program names few devices.
    MADE: ClassVar[dict[tuple[str, int | None], "Device"]] = {}

    def __new__(cls, type: "str | Device", index: int | None = None) -> Self:  # noqa: A002  # the field's own word
        """The device of this type and index, of that text, or that device itself."""
        if isinstance(type, Device):
            return type  # type: ignore[return-value]  # nothing derives from it
        made = cls.MADE.get((type, index))
        if made is None and index is None and ":" in type:
            made = cls.parse(type)
        if made is None:
            made = super().__new__(cls)
            object.__setattr__(made, "type", type)
            object.__setattr__(made, "index", index)
            # Whoever comes second gets what the first one made.
            made = cls.MADE.setdefault((type, index), made)
        return made  # type: ignore[return-value]  # as above

    @classmethod
    def parse(cls, text: str) -> "Device":
        """The device written as `type` or `type:index`.

        Raises `UnknownDevice` for a type that no backend has, and for another form.
        """
        key_of_device(text)
        kind, colon, index = text.partition(":")
        return cls(kind, int(index) if colon else None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Device.{name} cannot be set: a device is a value")

    def __reduce__(self) -> tuple[object, ...]:
        return Device, (self.type, self.index)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"Device(type={self.type!r}{index})"
