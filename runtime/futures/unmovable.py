"""What cannot be copied or pickled, and says so by its name.

True only here: the ways by which Python copies an object, each of them refused.
"""

from typing import Any, NoReturn, SupportsIndex

from runtime.errors.future import Unmovable


class Stays:
    """An object that is itself what others wait for."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            Unmovable: always.
        """
        raise Unmovable(kind=type(self).__name__, asked="pickled")

    def __setstate__(self, state: Any) -> NoReturn:
        """Refuse to be made of what somebody pickled.

        Raises:
            Unmovable: always.
        """
        raise Unmovable(kind=type(self).__name__, asked="unpickled")

    def __copy__(self) -> NoReturn:
        """Refuse to be copied.

        Raises:
            Unmovable: always.
        """
        raise Unmovable(kind=type(self).__name__, asked="copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        """Refuse to be copied in depth.

        Raises:
            Unmovable: always.
        """
        raise Unmovable(kind=type(self).__name__, asked="copied")
