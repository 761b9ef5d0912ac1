"""Addresses: where a worker listens, as people write it, and as others are told.

True only here: how an address is read.

    tcp://HOST:PORT        a name, a number, `[::1]`, or `*`; port 0 draws one
    ipc:///folder/name     a socket in a folder that only this user opens
    ipc:///folder/         the same, with a name that is drawn
    tcp://HOST:PORT#KEY    an endpoint: the worker's public key behind it

Names are looked up as IPv4; IPv6 is written in numbers, in brackets.
"""

from dataclasses import dataclass
from ipaddress import ip_address

from runtime.errors.rpc import AddressUnusable

# Of a public key, in hexadecimal.
KEY_DIGITS = 64
EVERYWHERE = ("*", "0.0.0.0", "::")  # noqa: S104  # named here to be recognised


@dataclass(frozen=True, slots=True)
class Address:
    """An address; `path` of `ipc`, `host` and `port` of `tcp`, `key` of an endpoint."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""
    key: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        where = self.path if self.scheme == "ipc" else f"{host}:{self.port}"
        return f"{self.scheme}://{where}{'#' * bool(self.key)}{self.key}"

    def is_loopback(self) -> bool:
        """Whether nobody else's machine reaches it; a name is not looked up here."""
        try:
            return self.scheme == "ipc" or ip_address(self.host).is_loopback
        except ValueError:
            return False


def parsed(text: str) -> Address:
    """The address that a text says.

    Raises:
        AddressUnusable: it says none.
    """
    rest, _, key = text.partition("#")
    scheme, found, where = rest.partition("://")
    why = ""
    if not found or scheme not in ("tcp", "ipc"):
        why = "an address begins with `tcp://` or `ipc://`"
    elif key and not is_key(key):
        why = f"a key is {KEY_DIGITS} hexadecimal digits"
    elif scheme == "ipc":
        if where.startswith("/") and "\0" not in where:
            return Address("ipc", path=where, key=key)
        why = "the path of a socket begins with `/`"
    else:
        host, _, port = where.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif not {*":[]"}.isdisjoint(host):
            host = ""
        if host and port.isascii() and port.isdigit() and int(port) < 1 << 16:
            return Address("tcp", host, int(port), key=key)
        why = "it is written `tcp://HOST:PORT`, with a port below 65536"
    raise AddressUnusable(address=text, why=why)


def is_key(text: str) -> bool:
    """Whether a text is a public or a secret key."""
    return len(text) == KEY_DIGITS and all(each in "0123456789abcdef" for each in text)
