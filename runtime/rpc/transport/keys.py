"""Keys: who a worker is, and whom it lets in.

A folder of keys holds these files:

    DIR/                 0700
      secret.key         0600: this worker's secret key; the public one follows from it
      public.key         the public key, for other workers' `allowed`
      allowed/NAME.key   the public keys of those who may come in, one a file
      keeper.key         the public key of who keeps the meeting address, if not ours

Rules:
- keys are of Curve25519, 64 hexadecimal digits; they say who sends, not what is sent;
- the folder is closed to all others, and secret files are: that is checked before
  anything is read (`runtime.rpc.transport.addresses`);
- whoever has our own key may come in: workers that share one folder are one group;
- `allowed` is read anew whenever somebody knocks: a key that was added counts at once,
  one that was taken away for the next connection;
- a refusal is told, with the key that was shown.
"""

import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field

from zmq import curve_keypair, curve_public
from zmq.utils import z85

from runtime.errors.rpc import NotAKey, UnsafeKeys
from runtime.rpc.transport.addresses import (
    FOLDER_FLAGS,
    OTHERS,
    OTHERS_WRITE,
    is_key,
    private_folder,
    unsafe,
)

# More than any file with a key in it has.
_MOST_BYTES = 4096
_FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def _read_key(folder: int, where: str, name: str, forbidden: int) -> str:
    """The key in a file of an open folder.

    Raises:
        FileNotFoundError: there is none.
        UnsafeKeys: others can write it, or read it where they must not.
        NotAKey: it holds something else.
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
        raise NotAKey(path=path, why="a key is 64 hexadecimal digits, and nothing else")
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
    public, secret = curve_keypair()
    return z85.decode(public).hex(), z85.decode(secret).hex()


def _public_of(secret: str) -> str:
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
            NotAKey: what is there is no key.
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
            NotAKey: there is no secret key, or what is there is none.
        """
        where = private_folder(folder)
        opened = os.open(where, FOLDER_FLAGS)
        try:
            try:
                secret = _read_key(opened, where, "secret.key", OTHERS)
            except FileNotFoundError:
                raise NotAKey(
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
            NotAKey: a file among the allowed ones is no key.
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
        bad: UnsafeKeys | NotAKey | None = None
        for name in sorted(os.listdir(allowed)):
            try:
                if name.startswith(".") or not name.endswith(".key"):
                    continue
                if _read_key(allowed, where, name, OTHERS_WRITE) == key:
                    return True
            except FileNotFoundError:
                # It was taken away just now.
                continue
            except (UnsafeKeys, NotAKey) as error:
                bad = error
        if bad is not None:
            raise bad
        return False


def answered(request: list[bytes], keys: Keys) -> tuple[list[bytes], str, str]:
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
    except (UnsafeKeys, NotAKey, OSError) as error:
        why = str(error)
    status, user = (b"400", b"") if why else (b"200", key.encode())
    return [version, number, status, b"", user, b""], key, why
