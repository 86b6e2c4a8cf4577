"""Write files so that no reader ever sees a half-written one."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from dpaudit.errors import InvalidArgument


def write_whole(path: Path, text: str) -> None:
    """Write a text file, with its folder, so that readers see the old content or the new content, never a part of it."""
    content = text.encode()
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # /dev/stdout or a pipe: nothing to replace
            path.write_bytes(content)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, content)
    except OSError as error:
        raise InvalidArgument(f"{str(path)!r} cannot be written: {error.strerror or error}.") from None


def check_writable(path: Path) -> None:
    """Raise the error that :func:`write_whole` would raise, as far as it can be known without writing the file."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if path.exists() and not path.is_file():  # /dev/stdout or a pipe
            return
        folder = path.absolute().parent
        while not folder.exists():
            folder = folder.parent
        # Permissions are not enough: the file system may be read-only or full.
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InvalidArgument(f"{str(path)!r} cannot be written: {error.strerror or error}.") from None


def replace_file(path: Path, content: bytes) -> None:
    """Write a temporary file in the same folder, then rename it to ``path``; an existing file is replaced at once."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)  # the mask can only be read by setting it
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
