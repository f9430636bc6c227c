"""What a sandbox can carry of a request: paths, texts and variables. The errors are told by the request's fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

ENVIRONMENT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST_NAME: Final = 255
"""Bytes of one part of a path: what file systems take."""

LONGEST_VALUE: Final = 128 * 1024 - 1
"""Bytes of an environment variable with its name: what Linux takes for one, less the byte that ends it."""

MAX_ENVIRONMENT_BYTES: Final = 256 * 1024
"""Bytes of all variables together; Prefect refuses parameters beyond 512 KiB."""

SHELL_NAMES: Final = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "OPTIND", "PPID", "SHELLOPTS", "UID"})
"""Variables that shells refuse to set, or to any text, and end the script over."""


def check_relative_path(path: str) -> None:
    """Checks that a path given by a caller stays inside the workspace.

    Raises:
        ValueError: The path is absolute, empty, has ``..``, ``.`` or empty parts, a backslash or control characters.
    """
    if not path or path.startswith("/") or "\\" in path or any(ord(c) < 32 or ord(c) == 127 for c in path):
        raise ValueError(f"{path!r} must be a relative path with forward slashes")
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(f"{path!r} must not have empty, `.` or `..` parts")
    if len(utf8(path, f"the path {path!r}")) > 1024:
        raise ValueError(f"the path {path[:40]!r}… is longer than 1024 bytes")
    if any(len(part.encode()) > LONGEST_NAME for part in path.split("/")):
        raise ValueError(f"the path {path[:40]!r}… has a part longer than {LONGEST_NAME} bytes")


def utf8(content: str | bytes, what: str) -> bytes:
    """Returns the bytes of a text.

    Raises:
        ValueError: It holds half of a surrogate pair, which no encoding can carry.
    """
    if isinstance(content, bytes):
        return content
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {error.start} of {what} cannot be written as UTF-8 (half of a surrogate pair)"
        ) from None


def check_environment(values: Mapping[str, str]) -> None:
    """Checks that variables can be set by a shell and handed to a program.

    Raises:
        ValueError: A name is none or belongs to the shell, a value cannot be carried, or all are too large.
    """
    total = 0
    for name, text in values.items():
        if not ENVIRONMENT_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name of an environment variable")
        if name in SHELL_NAMES:
            raise ValueError(f"{name!r} belongs to the shell; give the variable another name")
        if "\0" in text:
            raise ValueError(f"the value of {name!r} holds a NUL byte, which no environment can carry")
        size = len(name) + 1 + len(utf8(text, f"the value of {name!r}"))
        total += size
        if size > LONGEST_VALUE:
            raise ValueError(f"{name!r} has {size} bytes; Linux takes {LONGEST_VALUE} for one variable")
    if total > MAX_ENVIRONMENT_BYTES:
        raise ValueError(f"the variables have {total} bytes together; the limit is {MAX_ENVIRONMENT_BYTES}")
