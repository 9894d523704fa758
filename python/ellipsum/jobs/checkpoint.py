"""The checkpoint of a job: one secret file, replaced whole or not at all.

It holds the key that the noise will come from, made before anything is read; the raw sums so far,
with the places up to which they are; and what the job is, so that no other job takes it for its
own. A run that goes on from it makes the same release, bit for bit, however often (claims
resume-1, resume-2). Who has the file and the release has the raw sums: it is readable by its
owner alone, encrypted where a key is given, and for nobody once it is discarded.
"""

from __future__ import annotations

import json
import math
import os
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ..durable import BINARY, NO_FOLLOW, lock, open_regular, sync, sync_folder, write_all
from ..noise_keys import KEY_BYTES, root_key
from ..rows.files import Rows
from ..rows.identity import inputs_of
from ..rows.paths import CHECKPOINT_MAGIC, named_by
from ..sealed_bytes import CHECKSUM_BYTES, is_whole, sealed
from .difference import OTHER_VERSION, changed, difference

__all__ = ["Checkpoint", "CheckpointError", "Job"]

_VERSION = 1
#: After a write that took t, the next one waits for t times this, unless it is the last: on any
#: disk writing takes at most a fortieth of the time, and a kill costs little more than that wait.
REST = 40
_HEAD = struct.Struct("<8sHH12s")  # magic, version, whether it is encrypted, nonce


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: of another job, in use, damaged, or not to be written."""


class Checkpoint:
    """Where a job keeps what it needs to survive: hand it to a mechanism as ``resume=``.

    **Guarantees.** Whenever the run is killed, the next run with the same arguments goes on from
    the checkpoint: every block of rows counts once, and the release is the same one, under the
    same key, however often it is run (claims resume-1, resume-2). Another job, changed files, or
    a second run at the same time is refused (claim resume-3). The file is replaced atomically,
    and only its owner can read it (claim resume-4).

    **It is secret**: with the release it gives the raw sum. :meth:`discard` it when the release is
    safe: the same call would then begin a new job, whose release is a second one.

    Parameters
    ----------
    path : path
    key : 32 bytes, optional
        Encrypts it (ChaCha20-Poly1305 of ``cryptography``); the same for every run.
    every : int
        Bytes of rows between two checkpoints, at least: there are more of them where the disk is
        slow beside the rows, so that writing takes at most a fortieth of the time.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, key: bytes | None = None, every: int = 64 << 20
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        if key is not None and (not isinstance(key, bytes) or len(key) != KEY_BYTES):
            raise ValueError("key must be 32 bytes")
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self._key, self.every = key, every

    @classmethod
    def of(cls, resume: Checkpoint | str | os.PathLike[str]) -> Checkpoint:
        """A checkpoint, of one or of its path."""
        return resume if isinstance(resume, Checkpoint) else cls(resume)

    def inputs(self, rows: Rows) -> list[list[Any]]:
        """The files of a job, as they are now: path, size and time of change. Nothing is read.

        Raises
        ------
        CheckpointError
            The checkpoint is, or would be, one of the files that were named as rows.
        """
        if (name := named_by(rows.named, self.path, self._part, self._lock)) is not None:
            raise CheckpointError(
                f"{self.path} would be read as rows, by {name}: put the checkpoint elsewhere, or "
                "give it a name that begins with a dot"
            )
        return inputs_of(rows)

    @contextmanager
    def opened(self, binding: Mapping[str, Any]) -> Iterator[Job]:
        """The job of this checkpoint, begun or gone on with; no other run can have it meanwhile.

        A new one goes to the disk while the first rows are read. Nothing is drawn under its key
        before a ``Job.save`` has returned.

        Parameters
        ----------
        binding : mapping of plain values: what the job is, and of what; public

        Raises
        ------
        CheckpointError
            It is of another job, in use, damaged, not to be written, or others may read it.
        """
        with self._held():
            raw = self._read()
            if raw is None:
                job = Job(self, dict(binding), root_key(None), {}, {})
                job.save_soon()  # on the disk before any noise: each way to a release saves first
            else:
                job = self._parsed(raw)
                self._check(job.binding, dict(binding))
            try:
                yield job
            finally:
                job.wait()  # no write outlives the lock

    def discard(self) -> None:
        """Remove it, and with it the key and the raw sums; nothing if it is not there.

        The bytes may stay on the disk until they are written over, as those of any file: encrypt
        it where that matters.

        Raises
        ------
        CheckpointError
            A run is using it, or it is no checkpoint.
        """
        with self._held():
            for path in (self.path, self._part, self._lock):
                _remove(path)
            sync_folder(self.path)

    @property
    def _part(self) -> str:
        return f"{self.path}.part"

    @property
    def _lock(self) -> str:
        return f"{self.path}.lock"

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The lock: a file of its own, since the checkpoint is replaced."""
        fd = self._locked()
        try:
            yield
        finally:
            os.close(fd)

    def _locked(self) -> int:
        while True:
            try:
                fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | BINARY | NO_FOLLOW, 0o600)
            except OSError as error:
                hint = ": make its folder first" if isinstance(error, FileNotFoundError) else ""
                text = f"{self._lock} cannot be made ({error.strerror}){hint}"
                raise CheckpointError(text) from None
            try:
                if not lock(fd, wait=False):
                    raise CheckpointError(
                        f"{self.path} is in use by another run: wait until that ends"
                    )
                same = os.path.samestat(os.fstat(fd), os.stat(self._lock))
            except FileNotFoundError:  # discarded meanwhile
                same = False
            except BaseException:
                os.close(fd)
                raise
            if same:
                return fd
            os.close(fd)

    def write(self, body: bytes) -> None:
        """Replace the file: all of it, on the disk, or nothing."""
        data = self._sealed(body)
        _remove(self._part)  # of a run that was killed
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY | NO_FOLLOW
            fd = os.open(self._part, flags, 0o600)
            try:
                write_all(fd, data)
                sync(fd)
            finally:
                os.close(fd)
            os.replace(self._part, self.path)
            sync_folder(self.path)
        except OSError as error:
            with suppress(OSError):
                os.unlink(self._part)
            what = "what it was before is kept, and the next run goes on from there"
            raise CheckpointError(
                f"{self.path} cannot be written ({error.strerror}): {what}"
            ) from None

    def _read(self) -> bytes | None:
        try:
            fd = open_regular(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            text = f"{self.path} cannot be read ({error.strerror}): name another file"
            raise CheckpointError(text) from None
        with open(fd, "rb") as file:
            raw, mode = file.read(), os.fstat(fd).st_mode
        if os.name == "posix" and mode & 0o077 and raw.startswith(CHECKPOINT_MAGIC):
            raise CheckpointError(
                f"{self.path} is secret and may be read by others: chmod 600 it, or delete it"
            )
        return raw

    def _sealed(self, body: bytes) -> bytes:
        if self._key is None:
            return sealed(_HEAD.pack(CHECKPOINT_MAGIC, _VERSION, 0, bytes(12)) + body)
        head = _HEAD.pack(CHECKPOINT_MAGIC, _VERSION, 1, nonce := root_key(None)[:12])
        return head + self._cipher().encrypt(nonce, body, head)

    def _opened_body(self, raw: bytes) -> bytes:
        if len(raw) < _HEAD.size + CHECKSUM_BYTES or raw[:8] != CHECKPOINT_MAGIC:
            raise CheckpointError(f"{self.path} is no checkpoint: name another file")
        _, version, encrypted, nonce = _HEAD.unpack_from(raw)
        if version != _VERSION:
            raise CheckpointError(f"{self.path} {OTHER_VERSION}")
        if bool(encrypted) != (self._key is not None):
            need = "is encrypted: give its key" if encrypted else "is not encrypted: give no key"
            raise CheckpointError(f"{self.path} {need}")
        if not encrypted:
            if not is_whole(raw):
                raise CheckpointError(f"{self.path} is damaged: discard it (delete the file)")
            return raw[_HEAD.size : -CHECKSUM_BYTES]
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(self._cipher().decrypt(nonce, raw[_HEAD.size :], raw[: _HEAD.size]))
        except InvalidTag:
            raise CheckpointError(f"{self.path} is damaged, or of another key") from None

    def _cipher(self) -> Any:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
        except ImportError as error:
            raise ImportError(
                "an encrypted checkpoint needs cryptography: pip install 'ellipsum[encryption]'"
            ) from error
        return ChaCha20Poly1305(self._key or b"")

    def _parsed(self, raw: bytes) -> Job:
        body = self._opened_body(raw)
        (size,) = struct.unpack_from("<I", body)
        head = json.loads(body[4 : 4 + size])
        at = 4 + size + KEY_BYTES
        root, blobs = body[4 + size : at], {}
        for name, length in head["blobs"]:
            blobs[name] = body[at : at + length]
            at += length
        return Job(self, head["binding"], root, head["facts"], blobs)

    def _check(self, kept: dict[str, Any], asked: dict[str, Any]) -> None:
        if (what := difference(kept, asked)) is not None:
            raise CheckpointError(f"{self.path} {what}")

    def __repr__(self) -> str:
        return f"Checkpoint({self.path!r}, every={self.every})"


class Job:
    """What a checkpoint holds while a run has it. **Secret.**"""

    def __init__(
        self,
        checkpoint: Checkpoint,
        binding: dict[str, Any],
        root: bytes,
        facts: dict[str, Any],
        blobs: dict[str, bytes],
    ) -> None:
        self._checkpoint, self.every = checkpoint, checkpoint.every
        self.binding, self.root = binding, root
        self.facts, self.blobs = facts, blobs
        self.lock = threading.RLock()
        self._turn = threading.Lock()  # held for a moment only, also by the thread that writes
        self._writer: threading.Thread | None = None
        self._writing, self._next = False, b""
        self._failed: CheckpointError | None = None
        self._rests_until = 0.0

    @property
    def due(self) -> bool:
        """Whether a further state is worth its writing, so soon after the one before."""
        return time.monotonic() >= self._rests_until

    def save(self) -> None:
        """Put it on the disk as it is now, and wait for that."""
        with self.lock:
            with self._turn:
                self._next = b""  # this has more in it
            self.wait()
            self._raise()
            self._checkpoint.write(self._body())

    def save_soon(self) -> None:
        """Put it on the disk as it is now, while the rows are read on.

        Where a write is still under way, after that one, unless there is something newer by then.
        What goes wrong is raised by the save that follows.
        """
        with self.lock:
            self._raise()
            body = self._body()
            with self._turn:
                if self._writing:
                    self._next = body
                    return
                self._writing = True
            self._rests_until = math.inf if REST else 0.0
            self._writer = threading.Thread(target=self._write, args=(body,))
            self._writer.start()

    def wait(self) -> None:
        """Until nothing is being written, nor waits for its turn."""
        if self._writer is not None:
            self._writer.join()

    def _write(self, body: bytes) -> None:
        while body:
            start = time.monotonic()
            try:
                self._checkpoint.write(body)
            except CheckpointError as error:
                self._failed = error
            end = time.monotonic()
            with self._turn:
                self._rests_until = end + REST * (end - start)
                body, self._next = b"" if self._failed else self._next, b""
                self._writing = bool(body)

    def _raise(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _body(self) -> bytes:
        names = [[name, len(blob)] for name, blob in self.blobs.items()]
        head = {"binding": self.binding, "facts": self.facts, "blobs": names}
        text = json.dumps(head).encode()
        parts = [struct.pack("<I", len(text)), text, self.root, *self.blobs.values()]
        return b"".join(parts)

    def check_inputs(self, inputs: list[list[Any]]) -> None:
        """Refuse to go on if a file changed since the job began."""
        if inputs != self.binding.get("inputs"):
            what = changed(self.binding.get("inputs", []), inputs)
            raise CheckpointError(
                f"{what} while it was read: discard the checkpoint (delete the file)"
            )

    def __repr__(self) -> str:
        return "Job(secret)"


def _remove(path: str) -> None:
    """Remove a checkpoint, or as much as there is of one; never a file that is something else."""
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CheckpointError(f"{path} cannot be removed: {error.strerror}") from None
    with open(fd, "rb") as file:
        start = file.read(len(CHECKPOINT_MAGIC))
    if not CHECKPOINT_MAGIC.startswith(start):
        raise CheckpointError(f"{path} is no checkpoint, and stays as it is: move it elsewhere")
    os.unlink(path)
