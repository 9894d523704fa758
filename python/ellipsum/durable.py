"""Files that survive: writes that are on the disk before anything else happens, and locks."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress

__all__ = ["BINARY", "NO_FOLLOW", "lock", "open_regular", "sync", "sync_folder", "write_all"]

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

BINARY: int = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)

_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)

#: Where Windows locks its byte: beyond every byte that is read or written.
_LOCKED_BYTE = 1 << 40


def lock(fd: int, *, wait: bool) -> bool:
    """Lock an open file against every other opening of it, in this process and in others.

    The lock ends when the file is closed, or its process, however it ends.

    Parameters
    ----------
    fd : int
    wait : bool
        Whether to wait for it; else the answer is False where another holds it.
    """
    try:
        if sys.platform == "win32":
            os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if wait and sys.platform == "win32":
            return lock(fd, wait=wait)  # it gives up after ten seconds
        if wait:
            raise
        return False
    return True


def open_regular(path: str) -> int:
    """Open a file to be read, where it is a regular one, and no link.

    Raises
    ------
    OSError
        Whose ``strerror`` says what it is instead: a pipe would have waited for a writer.
    """
    try:
        fd = os.open(path, os.O_RDONLY | BINARY | NO_FOLLOW | _NO_WAIT)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return fd


def write_all(fd: int, data: bytes) -> None:
    """Write all of it: a write may take a part alone."""
    view = memoryview(data)
    while len(view):
        view = view[os.write(fd, view) :]


def sync(fd: int) -> None:
    """Wait until the file is on the disk, past the disk's own cache where one can ask for that."""
    full = None if sys.platform == "win32" else getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        with suppress(OSError):  # not every file system knows it
            fcntl.fcntl(fd, full)
            return
    os.fsync(fd)


def sync_folder(path: str) -> None:
    """Wait until the names in the folder of ``path`` are on the disk."""
    if sys.platform == "win32":
        return  # it has no way to ask
    fd = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
