"""The result of a program: the declared file, checked before and while it is downloaded, and nothing else.

The run's results directory was empty when the program began, so what lies there is this run's. The platform chose the
path. Text on standard output cannot replace the file; a line ``JSON_PATH=<path>`` is honoured when the declared file is
absent and the path lies in the results directory.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from daytona import DaytonaFileNotFoundError
from pydantic import JsonValue

from sandbox.budget import TRANSFER_SECONDS, insist
from sandbox.errors import SandboxError
from sandbox.faults import status_of
from sandbox.json_text import JsonTextError, parse_json
from sandbox.models import Outcome
from sandbox.outcomes import Status, Verdict
from sandbox.platform_api import REQUEST_SECONDS
from sandbox.retry import Deadline
from sandbox.workspace import Workspace

if TYPE_CHECKING:
    from daytona import AsyncSandbox
    from daytona_toolbox_api_client_async import FileInfo

STEP: Final = "collect_results"
MAX_UNEXPECTED: Final = 50
"""Names of other files in the results directory that are listed."""

THREAD_BYTES: Final = 256 * 1024
"""A file beyond this size is parsed in a thread, so that other runs go on."""

_KINDS: Final = {"link": "a symbolic link", "directory": "a directory", "missing": "a file that has vanished"}
_JSON_PATH: Final = re.compile(r"^JSON_PATH=(?P<path>\S.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was found.

    Attributes:
        path: Of the result file; ``None`` when there is none.
        value: The parsed file.
        problem: Why there is no value: missing or invalid.
        unexpected: Other files in the results directory.
    """

    path: str | None = None
    value: JsonValue = None
    problem: Verdict | None = None
    unexpected: tuple[str, ...] = ()


async def read_result(
    sandbox: AsyncSandbox,
    workspace: Workspace,
    *,
    limit: int,
    phase: str,
    exit_code: int | None,
    printed: str,
    platform: Deadline,
) -> Reading:
    """Finds, checks, downloads and parses the result.

    Args:
        sandbox: Where it is.
        workspace: The run's directory.
        limit: Largest file in bytes.
        phase: Name of the last phase, whose note says what lies at the declared path.
        exit_code: How that phase ended, for the text about a half-written file.
        printed: What it printed on standard output.
        platform: How long the platform may keep us waiting.

    Raises:
        SandboxError: The sandbox does not answer.
    """
    # At the same time: the note tells of what the list does not show, such as a link to nowhere.
    listed, status = await asyncio.gather(
        _list(sandbox, workspace, platform=platform), read_status(sandbox, workspace, phase, platform=platform)
    )
    if listed is None:
        return Reading(problem=_invalid("the results directory cannot be read: permission denied"))
    entries = {entry.name: entry for entry in listed}
    name = posixpath.basename(workspace.result)
    if name not in entries:
        name = _printed_name(printed, workspace) or name
    unexpected = tuple(
        f"{other}/" if entry.is_dir else other for other, entry in sorted(entries.items()) if other != name
    )[:MAX_UNEXPECTED]
    found = entries.get(name)
    path = f"{workspace.results}/{name}"
    if found is None:
        if status.result_kind == "link":
            return Reading(problem=_invalid("the results directory is a symbolic link"))
        return Reading(
            problem=Verdict(Outcome.RESULT_MISSING, "The program left no result file."), unexpected=unexpected
        )
    if found.is_dir:
        return Reading(path=path, problem=_invalid("the path of the result is a directory"), unexpected=unexpected)
    if found.size > limit:
        too_large = _invalid(f"the result file has {found.size} bytes; the limit is {limit}")
        return Reading(path=path, problem=too_large, unexpected=unexpected)
    try:
        data = await _download(sandbox, path, limit=limit, size=found.size, platform=platform)
    except SandboxError as error:
        if not _is_locked(error):
            raise
        locked = _invalid("the result file cannot be read: permission denied")
        return Reading(path=path, problem=locked, unexpected=unexpected)
    if path == workspace.result and status.result_kind not in (None, "file"):
        return Reading(
            path=path,
            problem=_invalid(
                f"the result must be a plain file, not {_KINDS.get(status.result_kind, 'something else')}"
            ),
            unexpected=unexpected,
        )
    if data is None:
        return Reading(
            path=path,
            problem=_invalid(f"the result file grew beyond the limit of {limit} bytes"),
            unexpected=unexpected,
        )
    try:
        value = await asyncio.to_thread(parse_json, data) if len(data) > THREAD_BYTES else parse_json(data)
    except JsonTextError as error:
        ended = "" if not error.incomplete else f"; it looks half-written, and the program ended with {exit_code}"
        return Reading(path=path, problem=_invalid(f"the result: {error.message}{ended}"), unexpected=unexpected)
    return Reading(path=path, value=value, unexpected=unexpected)


async def _list(sandbox: AsyncSandbox, workspace: Workspace, *, platform: Deadline) -> list[FileInfo] | None:
    """Returns what lies in the results directory; ``None`` when that cannot be read."""
    try:
        return await insist(
            lambda: sandbox.fs.list_files(workspace.results), within=platform, step=STEP, sandbox=sandbox.name
        )
    except SandboxError as error:
        if _is_locked(error):
            return None
        if not _is_absent(error) and status_of(error) != 400:
            raise
        # The program has removed the directory, or put a file in its place; the sandbox itself answers.
        return []


async def read_status(sandbox: AsyncSandbox, workspace: Workspace, phase: str, *, platform: Deadline) -> Status:
    """Reads the phase script's note; an empty one when there is none that can be read, which is the program's doing."""
    try:
        note = await insist(
            lambda: sandbox.fs.download_file(workspace.status(phase)), within=platform, step=STEP, sandbox=sandbox.name
        )
    except SandboxError as error:
        if _is_absent(error) or status_of(error) in (400, 403, 404):
            return Status()
        raise
    return Status.parse((note or b"")[:4096].decode("utf-8", "replace"))


async def _download(sandbox: AsyncSandbox, path: str, *, limit: int, size: int, platform: Deadline) -> bytes | None:
    """Returns the file, or ``None`` as soon as more bytes have come than it may have."""
    if not size:
        return b""  # the SDK takes a stream without data for a failure

    async def download() -> bytes | None:
        received = bytearray()
        stream = await sandbox.fs.download_file_stream(path, timeout=int(REQUEST_SECONDS))
        try:
            async for chunk in stream:
                received += chunk
                if len(received) > limit:
                    return None
        finally:
            await stream.aclose()  # type: ignore[attr-defined]
        return bytes(received)

    return await insist(download, within=platform, step=STEP, sandbox=sandbox.name, seconds=TRANSFER_SECONDS)


def _is_absent(error: SandboxError) -> bool:
    """True when the sandbox answers that there is no such file."""
    return isinstance(error.__cause__, DaytonaFileNotFoundError)


def _is_locked(error: BaseException) -> bool:
    """True for a 403. The key has just opened the session with the same right, so the file's mode is meant."""
    return status_of(error) == 403


def _printed_name(printed: str, workspace: Workspace) -> str | None:
    """Returns the file name of the last ``JSON_PATH=`` line that lies in the results directory."""
    for found in reversed(list(_JSON_PATH.finditer(printed))):
        path = posixpath.normpath(posixpath.join(workspace.directory, found.group("path")))
        if posixpath.dirname(path) == workspace.results:
            return posixpath.basename(path)
    return None


def _invalid(what: str) -> Verdict:
    return Verdict(Outcome.RESULT_INVALID, f"{what[0].upper()}{what[1:]}.")
