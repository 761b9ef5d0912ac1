"""Addresses: where a worker listens, and the folders that sockets and keys lie in.

    tcp://HOST:PORT        a name, a number, `[::1]`, or `*`; port 0 draws one
    ipc:///folder/name     a socket in a folder that only this user opens
    ipc:///folder/         the same, with a name that is drawn
    tcp://HOST:PORT#KEY    an endpoint: the worker's public key behind it

Names are looked up as IPv4; IPv6 is written in numbers, in brackets.

Rules of folders: the folder is owned by this user, closed to all others, and no link;
nobody else can rename it, or what it lies in, and put another one there (a folder with
the sticky bit is as good as one that nobody else writes).  The real path is what is
used then.
"""

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from runtime.errors.rpc import AddressUnusable, UnsafeKeys

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


def looked_up(address: Address) -> str:
    """The number of a host; "*" stays as it is.

    Raises:
        AddressUnusable: there is no host of that name.
    """
    if address.host == "*":
        return "*"
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        found = socket.getaddrinfo(
            address.host, address.port, family, socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:
        why = "there is no host of this name"
        raise AddressUnusable(address=str(address), why=why) from error
    return str(found[0][4][0])


def own_address(version6: bool) -> str:
    """The address by which this machine reaches others; nothing is sent to find out."""
    family = socket.AF_INET6 if version6 else socket.AF_INET
    # Of those that no machine has (RFC 5737, RFC 3849).
    beyond = "2001:db8::1" if version6 else "192.0.2.1"
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((beyond, 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def is_listening(path: str) -> bool:
    """Whether somebody listens at a path; one left over by the dead is free."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
        knock.setblocking(False)
        try:
            knock.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError as error:
            return error.errno == errno.EAGAIN
    return True


# Folders

# What a mode gives to others than the owner: to write, and anything at all.
OTHERS_WRITE, OTHERS = 0o022, 0o077
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def unsafe(status: os.stat_result, forbidden: int) -> str:
    """Why something is not ours alone; "" where it is."""
    if status.st_uid != os.geteuid():
        return f"it belongs to the user {status.st_uid}, not to this one"
    mode = stat.S_IMODE(status.st_mode)
    return f"its mode is {mode:04o}" if mode & forbidden else ""


def private_folder(path: str | os.PathLike[str], *, create: bool = False) -> str:
    """The real path of a folder that only this user opens.

    `create` makes it, with mode 0700, where it is missing; the folder that it lies in
    must be there.

    Raises:
        UnsafeKeys: it is missing or no folder, others may open or replace it, or it
            is a link.
    """
    given = os.path.abspath(path)
    folder = os.path.join(os.path.realpath(os.path.dirname(given)), Path(given).name)
    try:
        if create:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
        status = os.lstat(folder)
        why = "" if stat.S_ISDIR(status.st_mode) else "it is no folder"
        if stat.S_ISLNK(status.st_mode):
            why = "it is a link"
        why = why or unsafe(status, OTHERS)
    except OSError as error:
        why = error.strerror or "it cannot be opened"
    if why:
        raise UnsafeKeys(code="FolderUnsafe", path=given, why=why)
    _check_above(folder)
    return folder


def _check_above(folder: str) -> None:
    """Check that nobody else can rename what is above a folder."""
    for above in Path(folder).parents:
        status = os.lstat(above)
        writable = status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in (0, os.geteuid()) or writable:
            raise UnsafeKeys(
                code="FolderUnsafe",
                path=folder,
                why=f"others than this user can change `{above}`",
            )


@contextmanager
def locked_folder(folder: str) -> Iterator[None]:
    """While no other process that asks for the same is in a folder."""
    opened = os.open(folder, FOLDER_FLAGS)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
