"""File operations, each in a fork of the agent: inside the box, as its user, under its limits.

A link that a program of the box has planted leads to the box's own files, never to the host's.
"""

from __future__ import annotations

import errno
import os
import stat as modes

from .child import apply_limits
from .wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

_CHUNK = 256 * 1024
_BATCH = 64 * 1024
_LONGEST_ANSWER = 8 * 1024 * 1024
_LONGEST_LINE = 2000
_LARGEST_EDIT = 64 * 1024 * 1024


class RefusedError(Exception):
    """An operation that is refused for a reason that has no errno of its own."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def serve(message: Mapping[str, Any], *, wire: Wire, data: Sequence[int], limits: Mapping[str, int]) -> None:
    """Runs one operation and sends its outcome; never raises."""
    try:
        # A worker forks nothing, and must work while a fork bomb has used up the processes.
        apply_limits({name: value for name, value in limits.items() if name != "processes"})
        os.umask(0o022)
        os.chdir(message["directory"])
        operation = _OPERATIONS[message["operation"]]
        wire.send({"ok": operation(wire=wire, data=data, **message["arguments"])})
    except RefusedError as refused:
        wire.send({"kind": refused.kind, "text": str(refused)})
    except OSError as error:
        wire.send({"failed": error.errno or 0, "text": error.strerror or str(error)})
    except (MemoryError, RecursionError, ValueError) as error:
        wire.send({"kind": "failed", "text": f"{type(error).__name__}: {error}"})


def _printable(name: str) -> str:
    """Names that are not UTF-8 are shown with replacement characters, as a JSON answer could not carry them."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _absolute(path: str) -> str:
    return os.path.normpath(os.path.join(os.getcwd(), path))


def _describe(path: str, name: str) -> dict[str, Any]:
    found = os.stat(path)
    return {
        "name": _printable(name),
        "path": _printable(path),
        "is_dir": modes.S_ISDIR(found.st_mode),
        "size": found.st_size,
        "mode": found.st_mode,
        "mtime": found.st_mtime,
        "uid": found.st_uid,
        "gid": found.st_gid,
    }


def _send_entries(wire: Wire, entries: Iterator[Any]) -> dict[str, Any]:
    """Sends entries in batches that fit a frame even when every character has to be escaped."""
    batch: list[Any] = []
    count = waiting = sent = 0
    for entry in entries:
        batch.append(entry)
        count += 1
        waiting += len(str(entry))
        if waiting >= _BATCH:
            sent += waiting
            if sent > _LONGEST_ANSWER:
                raise RefusedError("failed", f"the answer is too long; {count} entries were found so far")
            wire.send({"entries": batch})
            batch = []
            waiting = 0
    wire.send({"entries": batch})
    return {"count": count}


def _stat(*, wire: Wire, data: Sequence[int], path: str) -> dict[str, Any]:
    full = _absolute(path)
    os.stat(full)
    return _describe(full, os.path.basename(full) or "/")


def _list(*, wire: Wire, data: Sequence[int], path: str, depth: int) -> dict[str, Any]:
    full = _absolute(path)
    os.listdir(full)

    def below(directory: str, left: int) -> Iterator[dict[str, Any]]:
        pending = [(directory, left)]
        while pending:
            at, levels = pending.pop()
            try:
                names = sorted(os.listdir(at))
            except OSError:
                continue
            inner = []
            for name in names:
                entry_path = os.path.join(at, name)
                try:
                    yield _describe(entry_path, name)
                except OSError:
                    continue  # gone meanwhile, or a link to nowhere, which Daytona's listing leaves out as well
                if levels > 1 and os.path.isdir(entry_path) and not os.path.islink(entry_path):
                    inner.append((entry_path, levels - 1))
            pending.extend(reversed(inner))

    return _send_entries(wire, below(full, depth))


def _open_regular(path: str, flags: int) -> int:
    # O_NONBLOCK: opening a FIFO must not wait for its other end.
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    mode = os.fstat(descriptor).st_mode
    if modes.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if modes.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory")
    raise RefusedError("invalid_path", "not a regular file")


def _read(*, wire: Wire, data: Sequence[int], path: str) -> dict[str, Any]:
    descriptor = _open_regular(_absolute(path), os.O_RDONLY)
    wire.send({"open": os.fstat(descriptor).st_size})
    sent = 0
    while chunk := os.read(descriptor, _CHUNK):
        _write_all(data[0], chunk)
        sent += len(chunk)
    return {"size": sent}


def _write(*, wire: Wire, data: Sequence[int], path: str) -> dict[str, Any]:
    full = _absolute(path)
    if path.endswith("/"):
        raise IsADirectoryError(errno.EISDIR, "Is a directory")
    _make_parents(full)
    descriptor = _open_regular(full, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    wire.send({"open": 0})
    written = 0
    while chunk := os.read(data[0], _CHUNK):
        _write_all(descriptor, chunk)
        written += len(chunk)
    os.close(descriptor)
    return {"size": written}


def _make_parents(path: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory") from error


def _write_all(descriptor: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(descriptor, view) :]


def _make_directory(*, wire: Wire, data: Sequence[int], path: str, mode: int) -> dict[str, Any]:
    full = _absolute(path)
    if os.path.isdir(full):
        return {}
    _make_parents(full)
    os.mkdir(full)
    os.chmod(full, mode)
    return {}


def _delete(*, wire: Wire, data: Sequence[int], path: str, recursive: bool) -> dict[str, Any]:
    full = _absolute(path)
    if not modes.S_ISDIR(os.lstat(full).st_mode):
        os.unlink(full)
        return {}
    if not recursive:
        raise IsADirectoryError(errno.EISDIR, "Is a directory; deleting one must be asked for with recursive=True")
    if full == "/":
        raise RefusedError("invalid_path", "the root directory cannot be deleted")
    _delete_tree(full)
    return {}


def _delete_tree(top: str) -> None:
    """Deletes a directory of any depth: walks by chdir, so that no path gets too long."""
    start = os.open(os.path.dirname(top), os.O_RDONLY | os.O_DIRECTORY)
    os.fchdir(start)
    stack = [(os.path.basename(top), _empty(os.path.basename(top)))]
    while stack:
        name, inner = stack[-1]
        if inner:
            child = inner.pop()
            stack.append((child, _empty(child)))
            continue
        stack.pop()
        if stack:
            os.chdir("..")
        else:
            os.fchdir(start)
        os.rmdir(name)


def _empty(name: str) -> list[str]:
    """Goes into a directory, deletes everything in it but directories, and returns the names of those."""
    if modes.S_ISLNK(os.lstat(name).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory")
    try:
        os.chmod(name, 0o700)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EROFS}:
            raise
    os.chdir(name)
    directories = []
    for entry in os.listdir("."):
        if modes.S_ISDIR(os.lstat(entry).st_mode):
            directories.append(entry)
        else:
            os.unlink(entry)
    return directories


def _move(*, wire: Wire, data: Sequence[int], source: str, destination: str) -> dict[str, Any]:
    old, new = _absolute(source), _absolute(destination)
    os.lstat(old)
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, "The destination exists", new)
    try:
        os.rename(old, new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # Directories of a layer cannot be renamed (overlayfs without redirect_dir), nor can anything between mounts.
        _move_by_copy(old, new)
    return {}


def _move_by_copy(old: str, new: str) -> None:
    read, write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(write, 2)
            argv = ["mv", "-fT", "--", old, new]
            os.execve("/bin/mv", argv, {"LC_ALL": "C.UTF-8"})
        finally:
            os._exit(127)
    os.close(write)
    text = b""
    while chunk := os.read(read, 4096):
        text = (text + chunk)[:4096]
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise RefusedError("failed", text.decode("utf-8", "replace").strip() or "mv failed")


def _walk(top: str) -> Iterator[tuple[str, str, bool]]:
    """Yields (path, name, is a directory) of everything below ``top``, following no links."""
    pending = [top]
    while pending:
        directory = pending.pop()
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            continue
        inner = []
        for name in names:
            path = os.path.join(directory, name)
            try:
                is_directory = modes.S_ISDIR(os.lstat(path).st_mode)
            except OSError:
                continue
            yield path, name, is_directory
            if is_directory:
                inner.append(path)
        pending.extend(reversed(inner))


def _find(*, wire: Wire, data: Sequence[int], path: str, pattern: str) -> dict[str, Any]:
    full = _absolute(path)
    wanted = pattern.encode("utf-8", "surrogatepass")

    def files() -> Iterator[str]:
        if modes.S_ISDIR(os.stat(full).st_mode):
            for inner, _, is_directory in _walk(full):
                if not is_directory:
                    yield inner
        else:
            yield full

    def matches() -> Iterator[list[Any]]:
        for file in files():
            try:
                descriptor = _open_regular(file, os.O_RDONLY)
            except (OSError, RefusedError):
                continue
            with os.fdopen(descriptor, "rb") as stream:
                number = 0
                # Bounded lines: a file may be one line of any length, and only its first part is searched then.
                while line := stream.readline(_CHUNK):
                    if number == 0 and b"\0" in line[:8192]:
                        break
                    number += 1
                    if wanted in line:
                        text = line.rstrip(b"\r\n")[:_LONGEST_LINE].decode("utf-8", "replace")
                        yield [_printable(file), number, text]
                    while not line.endswith(b"\n") and (line := stream.readline(_CHUNK)):
                        pass

    return _send_entries(wire, matches())


def _search(*, wire: Wire, data: Sequence[int], path: str, pattern: str) -> dict[str, Any]:
    import fnmatch

    full = _absolute(path)
    os.listdir(full)
    return _send_entries(
        wire, (_printable(inner) for inner, name, _ in _walk(full) if fnmatch.fnmatchcase(name, pattern))
    )


def _replace(*, wire: Wire, data: Sequence[int], path: str, pattern: str, replacement: str) -> dict[str, Any]:
    full = _absolute(path)
    descriptor = _open_regular(full, os.O_RDWR)
    if os.fstat(descriptor).st_size > _LARGEST_EDIT:
        raise RefusedError("failed", f"larger than {_LARGEST_EDIT} bytes")
    with os.fdopen(descriptor, "r+b") as stream:
        content = stream.read()
        old = pattern.encode("utf-8", "surrogatepass")
        changed = content.replace(old, replacement.encode("utf-8", "surrogatepass")) if old else content
        if changed != content:
            stream.seek(0)
            stream.write(changed)
            stream.truncate()
    return {"count": content.count(old) if old else 0}


def _set_permissions(
    *, wire: Wire, data: Sequence[int], path: str, mode: int | None, owner: str | None, group: str | None
) -> dict[str, Any]:
    import grp
    import pwd

    full = _absolute(path)
    uid = gid = -1
    try:
        if owner is not None:
            uid = int(owner) if owner.isdigit() else pwd.getpwnam(owner).pw_uid
        if group is not None:
            gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise RefusedError("failed", f"unknown name: {error}") from error
    if uid != -1 or gid != -1:
        try:
            os.chown(full, uid, gid)
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise RefusedError(
                    "access_denied", "a sandbox has one user; nothing can be given to another"
                ) from error
            raise
    if mode is not None:
        os.chmod(full, mode)
    return {}


_OPERATIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "stat": _stat,
    "list": _list,
    "read": _read,
    "write": _write,
    "make_directory": _make_directory,
    "delete": _delete,
    "move": _move,
    "find": _find,
    "search": _search,
    "replace": _replace,
    "set_permissions": _set_permissions,
}
