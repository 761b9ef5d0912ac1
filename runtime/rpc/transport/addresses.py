"""Addresses and keys: where a worker listens, who it is, and whom it lets in.

    tcp://HOST:PORT        a name, a number, `[::1]`, or `*`; port 0 draws one
    ipc:///folder/name     a socket in a folder that only this user opens
    ipc:///folder/         the same, with a name that is drawn
    tcp://HOST:PORT#KEY    an endpoint: the worker's public key behind it

Names are looked up as IPv4; IPv6 is written in numbers, in brackets.

Rules of folders, of sockets and of keys: the folder is owned by this user, closed to
all others, and no link; nobody else can rename it, or what it lies in, and put another
one there (a folder with the sticky bit is as good as one that nobody else writes).  The
real path is what is used then.

A folder of keys holds these files:

    DIR/                 0700
      secret.key         0600: this worker's secret key; the public one follows from it
      public.key         the public key, for other workers' `allowed`
      allowed/NAME.key   the public keys of those who may come in, one a file
      keeper.key         the public key of who keeps the meeting address, if not ours

Rules of keys:
- keys are of Curve25519, 64 hexadecimal digits; they say who sends, not what is sent;
- secret files are closed to all others: that is checked before anything is read;
- whoever has our own key may come in: workers that share one folder are one group;
- `allowed` is read anew whenever somebody knocks: a key that was added counts at once,
  one that was taken away for the next connection;
- a refusal is told, with the key that was shown;
- pyzmq, which has the curve, is loaded when a key is drawn or read.
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


def parse_address(text: str) -> Address:
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


def resolve_host(address: Address) -> str:
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


# More than any file with a key in it has.
_MOST_BYTES = 4096
_FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def _read_key(folder: int, where: str, name: str, forbidden: int) -> str:
    """The key in a file of an open folder.

    Raises:
        FileNotFoundError: there is none.
        UnsafeKeys: others can write it, or read it where they must not.
        UnsafeKeys: it holds something else.
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
            why = "it is no plain file"
        if why:
            raise UnsafeKeys(code="FolderUnsafe", path=path, why=why)
        text = os.read(file, _MOST_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(file)
    if not is_key(text):
        raise UnsafeKeys(
            code="NotAKey",
            path=path,
            why="a key is 64 hexadecimal digits, and nothing else",
        )
    return text


def _write_key(folder: int, name: str, key: str, mode: int) -> None:
    """Have a key in a file, unless the file is there; nobody sees a part of it."""
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


def _drawn() -> tuple[str, str]:
    """A new public key and its secret one."""
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

    `keeper` is the key of an endpoint that names none; `others` may come in beside
    whom `folder` allows.  The text of it shows no secret.
    """

    public: str
    secret: str = field(repr=False)
    keeper: str = ""
    folder: str = ""
    others: frozenset[str] = frozenset()

    @classmethod
    def drawn(cls, *, others: frozenset[str] = frozenset(), keeper: str = "") -> "Keys":
        """A new pair that is kept nowhere."""
        public, secret = _drawn()
        return cls(public, secret, keeper=keeper or public, others=others)

    @classmethod
    def create(cls, folder: str | os.PathLike[str]) -> "Keys":
        """A new pair in a folder, which is made where it is missing.

        Where the folder has a pair, that one is taken, and nothing is changed.

        Raises:
            UnsafeKeys: others can open or replace the folder.
            UnsafeKeys: what is there is no key.
        """
        where = private_folder(folder, create=True)
        opened = os.open(where, FOLDER_FLAGS)
        try:
            _write_key(opened, "secret.key", _drawn()[1], 0o600)
            keys = cls.load(where)
            _write_key(opened, "public.key", keys.public, 0o644)
        finally:
            os.close(opened)
        return keys

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Keys":
        """The keys in a folder.

        Raises:
            UnsafeKeys: others can open or replace the folder, or read its secret.
            UnsafeKeys: there is no secret key, or what is there is none.
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
        """The pair that all processes of this user on this machine share.

        It is drawn by the first one, and lies in the user's folder for the time of a
        session, or in one of the folder for temporary files.

        Raises:
            UnsafeKeys: somebody else has such a folder there already.
        """
        above = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        return cls.create(os.path.join(above, f"everyorder-rpc-{os.geteuid()}"))

    def allows(self, key: str) -> bool:
        """Whether somebody with this public key may come in.

        Raises:
            UnsafeKeys: others can change who may.
            UnsafeKeys: a file among the allowed ones is no key.
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
        """Whether a file of the open folder holds a key; a bad one hides no other."""
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
                # It was taken away just now.
                continue
            except UnsafeKeys as error:
                bad = error
        if bad is not None:
            raise bad
        return False


def zap_answer(request: list[bytes], keys: Keys) -> tuple[list[bytes], str, str]:
    """What is said to a socket that asks whether to let somebody in (ZAP, RFC 27).

    Returns:
        The parts of the answer, the key that was shown, and why it was refused; ""
        where it was not.
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
