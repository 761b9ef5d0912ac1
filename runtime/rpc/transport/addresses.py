"""Addresses and keys: where a worker listens, its identity, and who may connect.

    tcp://HOST:PORT        a name, a numeric address, `[::1]`, or `*`; port 0 means any
    ipc:///folder/name     a socket in a folder that only this user can open
    ipc:///folder/         the same, with a random name
    tcp://HOST:PORT#KEY    an endpoint: an address with the worker's public key

Names are resolved as IPv4; an IPv6 address is numeric, in brackets.

Rules of folders, for sockets and for keys: the folder is owned by this user, closed to
all other users, and not a link; other users can neither rename it or a folder above it,
nor replace them (a folder with the sticky bit counts as not writable by others).  After
the check, the real path is used.

A folder of keys holds these files:

    DIR/                 0700
      secret.key         0600: this worker's secret key; it determines the public key
      public.key         the public key, for other workers' `allowed`
      allowed/NAME.key   the public keys of workers that may connect, one per file
      keeper.key         the public key of the keeper, if it differs from this one

Rules of keys:
- keys are of Curve25519, 64 hexadecimal digits; they authenticate the sender, not the
  content;
- secret files are closed to all other users, which is checked before they are read;
- a worker with the same key may connect: workers that share one folder are one group;
- `allowed` is read again for every connection request: an added key is effective at
  once, a removed key from the next connection on;
- a refusal is reported, with the key of the refused worker;
- pyzmq, which implements the curve, is loaded when a key is created or read.
"""

import errno
import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from everyorder.runtime.errors.rpc import AddressUnusable, UnsafeKeys

# Length of a public key, in hexadecimal digits.
KEY_DIGITS = 64
EVERYWHERE = ("*", "0.0.0.0", "::")  # noqa: S104  # compared, not bound


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
        """Return True if only this machine can reach it; names are not resolved."""
        try:
            return self.scheme == "ipc" or ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """Parse an address.

    Raises:
        AddressUnusable: the text is not a valid address.
    """
    rest, _, key = text.partition("#")
    scheme, separator, where = rest.partition("://")
    why = ""
    if not separator or scheme not in ("tcp", "ipc"):
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
    """Return True if a text is a public or a secret key."""
    return len(text) == KEY_DIGITS and all(each in "0123456789abcdef" for each in text)


def resolve_host(address: Address) -> str:
    """Return the numeric address of a host; "*" is returned unchanged.

    Raises:
        AddressUnusable: the name cannot be resolved.
    """
    if address.host == "*":
        return "*"
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        infos = socket.getaddrinfo(
            address.host, address.port, family, socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:
        why = "there is no host of this name"
        raise AddressUnusable(address=str(address), why=why) from error
    return str(infos[0][4][0])


def own_address(version6: bool) -> str:
    """Return the address by which this machine reaches others; no packet is sent."""
    # Addresses that are reserved for documentation (RFC 5737, RFC 3849).
    beyond = "2001:db8::1" if version6 else "192.0.2.1"
    return address_towards(beyond) or socket.gethostname()


def address_towards(host: str) -> str:
    """Return the address of this machine from which it reaches a numeric address; "" if
    there is no route.  No packet is sent.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, 9))
            return str(probe.getsockname()[0])
        except OSError:
            return ""


def is_listening(path: str) -> bool:
    """Return True if a process listens at a path; False for a stale socket file."""
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

# Mode bits of users other than the owner: write access, and any access.
OTHERS_WRITE, OTHERS = 0o022, 0o077
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def unsafe(status: os.stat_result, forbidden: int) -> str:
    """Return why a file is not private to this user; "" if it is."""
    if status.st_uid != os.geteuid():
        return f"it belongs to the user {status.st_uid}, not to this one"
    mode = stat.S_IMODE(status.st_mode)
    return f"its mode is {mode:04o}" if mode & forbidden else ""


def private_folder(path: str | os.PathLike[str], *, create: bool = False) -> str:
    """Return the real path of a folder that only this user can open.

    `create` creates it, with mode 0700, if it is missing; its parent folder must exist.

    Raises:
        UnsafeKeys: it is missing or not a folder, other users may open or replace it,
            or it is a link.
    """
    absolute = os.path.abspath(path)
    folder = os.path.join(
        os.path.realpath(os.path.dirname(absolute)), Path(absolute).name
    )
    try:
        if create:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
        status = os.lstat(folder)
        why = "" if stat.S_ISDIR(status.st_mode) else "it is not a folder"
        if stat.S_ISLNK(status.st_mode):
            why = "it is a link"
        why = why or unsafe(status, OTHERS)
    except OSError as error:
        why = error.strerror or "it cannot be opened"
    if why:
        raise UnsafeKeys(code="FolderUnsafe", path=absolute, why=why)
    _check_above(folder)
    return folder


def _check_above(folder: str) -> None:
    """Check that other users cannot rename the folders above a folder."""
    for above in Path(folder).parents:
        status = os.lstat(above)
        writable = status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in (0, os.geteuid()) or writable:
            raise UnsafeKeys(
                code="FolderUnsafe",
                path=folder,
                why=f"other users can change `{above}`",
            )


@contextmanager
def locked_folder(folder: str) -> Iterator[None]:
    """Hold an exclusive lock on a folder during a block."""
    opened = os.open(folder, FOLDER_FLAGS)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


# More bytes than any file with a key has.
_MOST_BYTES = 4096
_FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def _read_key(folder: int, where: str, name: str, forbidden: int) -> str:
    """Return the key in a file of an open folder.

    Raises:
        FileNotFoundError: there is no such file.
        UnsafeKeys: other users can write it, or read it although it is secret.
        UnsafeKeys: it does not hold a key.
    """
    path = os.path.join(where, name)
    try:
        file = os.open(name, _FILE_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnsafeKeys(
            code="FolderUnsafe", path=path, why=f"it is a link, or {error.strerror}"
        ) from error
    try:
        status = os.fstat(file)
        why = unsafe(status, forbidden)
        if not stat.S_ISREG(status.st_mode):
            why = "it is not a regular file"
        if why:
            raise UnsafeKeys(code="FolderUnsafe", path=path, why=why)
        text = os.read(file, _MOST_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(file)
    if not is_key(text):
        raise UnsafeKeys(
            code="NotAKey",
            path=path,
            why="expected 64 hexadecimal digits, and nothing else",
        )
    return text


def _write_key(folder: int, name: str, key: str, mode: int) -> None:
    """Write a key to a new file, atomically; an existing file is left unchanged."""
    draft = f".{name}.{os.getpid()}.{os.urandom(8).hex()}"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=folder)
    try:
        os.write(file, key.encode() + b"\n")
        os.fsync(file)
        with suppress(FileExistsError):
            os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(file)
        os.unlink(draft, dir_fd=folder)


def _new_pair() -> tuple[str, str]:
    """Return a new public key and its secret key."""
    from zmq import curve_keypair
    from zmq.utils import z85

    public, secret = curve_keypair()
    return z85.decode(public).hex(), z85.decode(secret).hex()


def _public_of(secret: str) -> str:
    from zmq import curve_public
    from zmq.utils import z85

    return z85.decode(curve_public(z85.encode(bytes.fromhex(secret)))).hex()


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one worker.

    `keeper` is the key of an endpoint without one; `others` may connect in addition to
    the keys that `folder` allows.  The repr does not show the secret.
    """

    public: str
    secret: str = field(repr=False)
    keeper: str = ""
    folder: str = ""
    others: frozenset[str] = frozenset()

    @classmethod
    def drawn(cls, *, others: frozenset[str] = frozenset(), keeper: str = "") -> "Keys":
        """Return a new pair that is not stored."""
        public, secret = _new_pair()
        return cls(public, secret, keeper=keeper or public, others=others)

    @classmethod
    def create(cls, folder: str | os.PathLike[str]) -> "Keys":
        """Return the pair of a folder; create folder and pair if they are missing.

        An existing pair is not changed.

        Raises:
            UnsafeKeys: other users can open or replace the folder.
            UnsafeKeys: a file does not hold a key.
        """
        where = private_folder(folder, create=True)
        opened = os.open(where, FOLDER_FLAGS)
        try:
            _write_key(opened, "secret.key", _new_pair()[1], 0o600)
            keys = cls.load(where)
            _write_key(opened, "public.key", keys.public, 0o644)
        finally:
            os.close(opened)
        return keys

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Keys":
        """Return the keys of a folder.

        Raises:
            UnsafeKeys: other users can open or replace the folder, or read its secret.
            UnsafeKeys: there is no secret key, or a file does not hold a key.
        """
        where = private_folder(folder)
        opened = os.open(where, FOLDER_FLAGS)
        try:
            try:
                secret = _read_key(opened, where, "secret.key", OTHERS)
            except FileNotFoundError:
                raise UnsafeKeys(
                    code="NotAKey",
                    path=os.path.join(where, "secret.key"),
                    why="there is no such file; `rpc.Keys.create(folder)` makes it",
                ) from None
            public = _public_of(secret)
            try:
                keeper = _read_key(opened, where, "keeper.key", OTHERS_WRITE)
            except FileNotFoundError:
                keeper = public
        finally:
            os.close(opened)
        return cls(public, secret, keeper=keeper, folder=where)

    @classmethod
    def of_this_user(cls) -> "Keys":
        """Return the pair that all processes of this user on this machine share.

        The first process creates it, in the user's runtime folder, or in a subfolder of
        the folder for temporary files.

        Raises:
            UnsafeKeys: another user has created a folder of that name.
        """
        above = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        return cls.create(os.path.join(above, f"everyorder-rpc-{os.geteuid()}"))

    def allows(self, key: str) -> bool:
        """Return True if a worker with this public key may connect.

        Raises:
            UnsafeKeys: other users can change the allowed keys.
            UnsafeKeys: a file among the allowed keys does not hold a key.
        """
        if key == self.public or key in self.others:
            return True
        if not self.folder:
            return False
        opened = os.open(private_folder(self.folder), FOLDER_FLAGS)
        try:
            allowed = os.open("allowed", FOLDER_FLAGS, dir_fd=opened)
        except FileNotFoundError:
            return False
        finally:
            os.close(opened)
        try:
            return self._is_in(allowed, key)
        finally:
            os.close(allowed)

    def _is_in(self, allowed: int, key: str) -> bool:
        """Return True if a file of the open folder holds a key; skip bad files."""
        where = os.path.join(self.folder, "allowed")
        why = unsafe(os.fstat(allowed), OTHERS_WRITE)
        if why:
            raise UnsafeKeys(code="FolderUnsafe", path=where, why=why)
        bad: UnsafeKeys | None = None
        for name in sorted(os.listdir(allowed)):
            try:
                if name.startswith(".") or not name.endswith(".key"):
                    continue
                if _read_key(allowed, where, name, OTHERS_WRITE) == key:
                    return True
            except FileNotFoundError:
                # The file was removed in the meantime.
                continue
            except UnsafeKeys as error:
                bad = error
        if bad is not None:
            raise bad
        return False


def zap_answer(request: list[bytes], keys: Keys) -> tuple[list[bytes], str, str]:
    """Answer a socket that asks to admit a connection (ZAP, RFC 27).

    Returns:
        The parts of the answer, the key of the connecting worker, and why it is
        refused;
        "" if it is admitted.
    """
    version, number = request[:2]
    key = request[6].hex() if request[5:6] == [b"CURVE"] and len(request) == 7 else ""
    why = ""
    try:
        if not keys.allows(key):
            why = "the key is not among the allowed ones"
    except (UnsafeKeys, OSError) as error:
        why = str(error)
    status, user = (b"400", b"") if why else (b"200", key.encode())
    return [version, number, status, b"", user, b""], key, why
