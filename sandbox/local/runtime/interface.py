"""What the platform asks of a runtime: boxes, processes, shell sessions and files.

A *runtime* knows how to isolate (bubblewrap, Docker); the toolbox and the control plane see only these protocols.
Everything is asyncio and must be used from the loop that called ``Runtime.prepare``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

GIB = 1024**3
MIB = 1024**2


class EndReason(StrEnum):
    """Why a process ended, as far as the platform knows better than the exit code."""

    EXIT = "exit"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    DISK = "disk"
    KILLED = "killed"
    BOX_LOST = "box_lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy:
    """What a box may reach. The default is nothing.

    Attributes:
        mode: ``none`` nothing, ``public`` every public address, ``allow`` only ``cidrs`` and ``domains``.
        cidrs: IPv4 networks (``10.0.0.0/8``) that may be reached, any port.
        domains: Host names, exact or ``*.suffix``, that may be reached on ports 80 and 443.
    """

    mode: Literal["none", "public", "allow"] = "none"
    cidrs: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A TCP port of another machine, or of the platform's own.

    Attributes:
        host: ``localhost`` for the platform's own host, an address as ``ipaddress`` writes it, or a name in small
            letters that the platform's host resolves.
        port: 1 to 65535.
    """

    host: str
    port: int

    def __str__(self) -> str:
        """Returns ``host:port``, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSpec:
    """How to start a box.

    Attributes:
        box_id: Identity; names the box's directory, so letters, digits and ``-`` only (a UUID).
        layers: Ids of the frozen layers below the box's writable directory, lowest first; the base is implied.
        image: Name of the image below the layers, for runtimes that use images; ``None`` means the runtime's default.
        env: Environment of every process in the box.
        user: Informational name of the user inside.
        workdir: Start directory of processes; made if absent. ``None`` means the home directory.
        cpu: Whole CPUs.
        memory: Bytes that all processes together may use.
        disk: Bytes the writable directory may hold.
        network: See ``NetworkPolicy``.
        connections: What may be reached over plain TCP whatever the policy says, under its own name or address.
        build: True for a snapshot build (looser limits are the runtime's business).
    """

    box_id: str
    layers: tuple[str, ...] = ()
    image: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = "sandbox"
    workdir: str | None = None
    cpu: int = 1
    memory: int = GIB
    disk: int = 3 * GIB
    network: NetworkPolicy = NetworkPolicy()
    connections: tuple[Endpoint, ...] = ()
    build: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitStatus:
    """How a process ended.

    Attributes:
        exit_code: 0 to 255 as a shell would report it (128 + signal for a signal), ``None`` when nobody can know.
        signal: Number of the signal that ended it, else ``None``.
        reason: See ``EndReason``.
    """

    exit_code: int | None
    signal: int | None = None
    reason: EndReason = EndReason.EXIT


class OutputPipe(Protocol):
    """The read end of a process's stdout or stderr, outside the box."""

    async def read(self, limit: int = 65536) -> bytes:
        """Returns 1 to ``limit`` bytes as soon as there are any, ``b""`` at the end of the stream."""
        ...

    def close(self) -> None:
        """Stops reading; a writer gets SIGPIPE. May be called twice."""
        ...


class InputPipe(Protocol):
    """The write end of a process's stdin, outside the box."""

    async def write(self, data: bytes) -> None:
        """Writes everything.

        Raises:
            BrokenPipeError: Nobody reads any more.
        """
        ...

    def close(self) -> None:
        """Ends the input. May be called twice."""
        ...


class Process(Protocol):
    """A one-shot process in a box."""

    stdin: InputPipe | None
    stdout: OutputPipe
    stderr: OutputPipe

    async def wait(self) -> ExitStatus:
        """Waits for the main process (not for its children or for the pipes)."""
        ...

    async def kill(self) -> None:
        """Kills the process and everything descended from it and returns when they are gone. May be called twice."""
        ...


class ShellCommand(Protocol):
    """A command in a shell session, sourced by the session's shell with its own pipes."""

    stdin: InputPipe | None
    stdout: OutputPipe
    stderr: OutputPipe

    async def wait(self) -> ExitStatus:
        """Waits until the shell has reported the command's exit code, or the shell has ended while it ran.

        The pipes may still hold output then, and children that inherited them may still write.
        """
        ...


class ShellSession(Protocol):
    """One long-lived non-interactive shell (bash, else sh); ``cd``, variables, functions and traps persist."""

    @property
    def ended(self) -> bool:
        """True once the shell itself has gone (``exit N``, ``exec``, killed)."""
        ...

    async def start(self, command: str, *, stdin: bool) -> ShellCommand:
        """Starts ``command``; the caller starts the next one only after ``wait`` of the former has returned.

        Args:
            command: Shell text of any length, sourced by the shell.
            stdin: True keeps an input open for ``ShellCommand.stdin``; False gives an immediate end of file.

        Raises:
            SessionEndedError: The shell has gone.
        """
        ...

    async def delete(self) -> None:
        """Kills the shell and everything descended from it, also what called ``setsid``; returns when they are gone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    """One file as seen from inside the box; ids are numeric, times are seconds since the epoch."""

    name: str
    path: str
    is_dir: bool
    size: int
    mode: int
    mtime: float
    uid: int
    gid: int


class BoxFiles(Protocol):
    """File operations that run inside the box, as the box's user, so no path trick reaches the host.

    Relative paths resolve against the box's work directory. Every method raises ``BoxFileError`` (see ``errors``) with
    a ``kind`` of ``not_found``, ``access_denied``, ``invalid_path``, ``exists``, ``is_directory``, ``not_a_directory``,
    ``not_empty``, ``no_space`` or ``failed``.
    """

    async def stat(self, path: str) -> FileStat:
        """Describes what is at ``path``; follows links."""
        ...

    async def list(self, path: str, *, depth: int = 1) -> Sequence[FileStat]:
        """Describes what is in a directory, ``depth`` levels down; links to nowhere are left out."""
        ...

    def read(self, path: str) -> AsyncIterator[bytes]:
        """Yields the content in chunks of at most 64 KiB; errors are raised before the first chunk."""
        ...

    async def write(self, path: str, chunks: AsyncIterator[bytes]) -> int:
        """Makes parents (0755), truncates, writes; returns the number of bytes. Drains ``chunks`` also on failure."""
        ...

    async def make_directory(self, path: str, *, mode: int = 0o755) -> None:
        """Makes a directory and its parents; one that exists is left as it is."""
        ...

    async def delete(self, path: str, *, recursive: bool = False) -> None:
        """Deletes a file or, with ``recursive``, a directory with everything in it."""
        ...

    async def move(self, source: str, destination: str) -> None:
        """Renames; copies where the file system cannot. What exists at ``destination`` is not replaced."""
        ...

    async def find(self, path: str, pattern: str) -> Sequence[tuple[str, int, str]]:
        """Literal text search below ``path``: (file, 1-based line, text of the line)."""
        ...

    async def search(self, path: str, pattern: str) -> Sequence[str]:
        """Glob on base names below ``path``, directories included."""
        ...

    async def replace(self, path: str, pattern: str, replacement: str) -> None:
        """Replaces every occurrence of a literal text in one file."""
        ...

    async def set_permissions(
        self, path: str, *, mode: int | None = None, owner: str | None = None, group: str | None = None
    ) -> None:
        """Changes mode, owner and group; a box has one user, so the latter two can only be what they are."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxUsage:
    """What a box uses now; bytes and counts."""

    memory: int
    disk: int
    processes: int


class Box(Protocol):
    """One running, isolated machine."""

    spec: BoxSpec
    files: BoxFiles
    home: str

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bool = False,
        merge_stderr: bool = False,
    ) -> Process:
        """Starts a process. ``merge_stderr`` sends stderr into stdout in the order written.

        Raises:
            BoxSpawnError: The program or the directory does not exist or is not allowed; ``exit_code`` is 127 or 126.
            BoxLostError: The box has gone.
        """
        ...

    async def open_session(self) -> ShellSession:
        """Opens a shell session.

        Raises:
            BoxSpawnError: There is no shell, or its start directory cannot be used.
            BoxLostError: The box has gone.
        """
        ...

    def update_env(self, values: Mapping[str, str], *, unset: Sequence[str] = ()) -> None:
        """Changes the environment of processes and sessions started later."""
        ...

    async def set_network(self, policy: NetworkPolicy) -> None:
        """Changes what may be reached; connections that are no longer allowed are cut."""
        ...

    async def connect(self, port: int) -> tuple[int, int]:
        """Reserved for previews; not needed by the first version. Raises NotImplementedError where absent."""
        ...

    async def listening_ports(self) -> Sequence[int]:
        """Returns the TCP ports on which programs in the box listen."""
        ...

    async def usage(self) -> BoxUsage:
        """Measures what the box uses now."""
        ...

    async def alive(self) -> bool:
        """True if the agent in the box answers within a second."""
        ...

    async def stop(self, *, force: bool = False) -> None:
        """Ends every process (SIGTERM, up to 10 s, SIGKILL; at once with ``force``) and the box; files stay."""
        ...

    async def wait(self) -> str:
        """Waits until the box has ended for whatever reason; returns a sentence that says why."""
        ...


class Runtime(Protocol):
    """How boxes are made. One instance per platform process.

    Attributes:
        name: What logs call it.
        uses_images: True if an image's name says what boxes are made of; False if this machine's toolchains take the
            place of any image.
    """

    name: str
    uses_images: bool

    async def prepare(self) -> None:
        """Checks the machine, writes the base layer and what boxes need, cleans up after a killed predecessor.

        Raises:
            RuntimeUnavailableError: This machine cannot isolate; the text says why and what to do.
        """
        ...

    async def start(self, spec: BoxSpec) -> Box:
        """Starts a box over its existing writable directory, or a new one."""
        ...

    async def freeze(self, box_id: str, layer_id: str) -> int:
        """Turns the writable directory of a *stopped* box into an immutable layer; returns its size in bytes."""
        ...

    async def remove_box(self, box_id: str) -> None:
        """Deletes the files of a stopped box (moved to the trash at once, deleted in the background)."""
        ...

    async def remove_layer(self, layer_id: str) -> None:
        """Deletes a layer that no box stands on, in the background."""
        ...

    def boxes_on_disk(self) -> Sequence[str]:
        """Returns the ids of boxes that have a writable directory, running or not."""
        ...

    def layers_on_disk(self) -> Sequence[str]:
        """Returns the ids of the frozen layers."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes when the base (the machine's toolchains) changes, so snapshots made over it are stale."""
        ...

    async def close(self) -> None:
        """Stops every box and waits for background deletions."""
        ...
