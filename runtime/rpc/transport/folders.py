"""Folders that only one user opens: for keys, and for sockets without them.

True only here: what is checked before anything in such a folder is believed.

Rules: the folder is owned by this user, closed to all others, and no link; nobody else
can rename it, or what it lies in, and put another one there (a folder with the sticky
bit is as good as one that nobody else writes).  The real path is what is used then.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runtime.errors.rpc import FolderUnsafe

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
        FolderUnsafe: it is missing or no folder, others may open or replace it, or it
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
        raise FolderUnsafe(path=given, why=why)
    _check_above(folder)
    return folder


def _check_above(folder: str) -> None:
    """Check that nobody else can rename what is above a folder."""
    for above in Path(folder).parents:
        status = os.lstat(above)
        writable = status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in (0, os.geteuid()) or writable:
            raise FolderUnsafe(
                path=folder, why=f"others than this user can change `{above}`"
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
