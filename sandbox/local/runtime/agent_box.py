"""One running box with an agent as its pid 1, whatever its walls are made of."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Protocol

from .channel import Channel, socket_pair, whole_number
from .control import AgentControl
from .endpoints import RoutePlan
from .environment import checked, network_environment
from .errors import BoxLostError, BoxSpawnError
from .files import SandboxFiles
from .interface import Box, BoxFiles, BoxSpec, BoxUsage, NetworkPolicy
from .pipes import PipeEnd, PipeReader, PipeWriter, make_pipe
from .processes import BoxProcess
from .proxy import PROXY_PORT
from .sessions import BoxSession
from .units import Kills, Unit
from .ways_out import WaysOut

HOME = "/home/sandbox"
_GRACE_SECONDS = 10.0
_EXIT_SECONDS = 1.0
_AGENT_ENDED = "the box's agent has ended"


class MemoryAccount(Protocol):
    """What the kernel tells about the memory of a box."""

    @property
    def watched(self) -> bool:
        """True if the kernel tells nothing, so that the agent has to watch it."""
        ...

    def oom_kills(self) -> int:
        """Returns how many processes of the box the kernel has killed for memory."""
        ...

    def memory_used(self) -> int | None:
        """Returns the bytes the kernel accounts to the box, page cache left out; ``None`` where it does not."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxParts:
    """What a box is put together from.

    Attributes:
        spec: What was asked for.
        channel: The control channel to the agent.
        account: The kernel's account of its memory.
        surroundings: Environment of its processes beneath everything that callers set.
        ways: The ways out of it.
        pipes: See ``PipeEnd``.
        measure_disk: Returns the bytes of the writable directory.
        on_end: Awaited once when the box has ended, before ``wait`` returns.
    """

    spec: BoxSpec
    channel: Channel
    account: MemoryAccount
    surroundings: Mapping[str, str]
    ways: WaysOut
    pipes: set[PipeEnd]
    measure_disk: Callable[[], Coroutine[Any, Any, int]]
    on_end: Callable[[AgentBox], Coroutine[Any, Any, None]]


class AgentBox(Box):
    """A live box; see ``Box``. Every runtime adds how it learns of the box's end."""

    def __init__(self, parts: BoxParts) -> None:
        spec = self.spec = parts.spec
        self.home = HOME
        self.workdir = spec.workdir or HOME
        self.pipes = parts.pipes
        self.ended = False
        self._env = dict(spec.env)
        self._surroundings = dict(parts.surroundings)
        self._channel = parts.channel
        self._account = parts.account
        self._ways = parts.ways
        self._proxy = parts.ways.proxy
        self._measure_disk = parts.measure_disk
        self._on_end = parts.on_end
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._sentence = _AGENT_ENDED
        self._stopping = False
        self._watcher_kills = 0
        self._disk_kills = 0
        self._names = itertools.count(1)
        self._units: dict[str, Unit] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.control = AgentControl(self._channel, on_event=self._event, on_end=self._agent_ended)
        self.files: BoxFiles = SandboxFiles(self.control, pipes=self.pipes, workdir=self.workdir, disk=spec.disk)
        self._serving = asyncio.create_task(self.control.serve(), name=f"box {spec.box_id}: control")
        self._burying = asyncio.create_task(self._bury(), name=f"box {spec.box_id}: end")

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bool = False,
        merge_stderr: bool = False,
    ) -> BoxProcess:
        """Starts a process; see ``Box.run``."""
        if not argv or any("\0" in word for word in argv):
            raise BoxSpawnError("the command is empty or contains a NUL character", exit_code=126)
        message = {
            "kind": "process",
            "argv": list(argv),
            "env": self.environment(env),
            "directory": str(PurePosixPath(self.workdir, cwd or ".")),
        }
        with contextlib.ExitStack() as theirs:
            null = _held(theirs, os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
            in_read, stdin_pipe = null, None
            if stdin:
                read, write = make_pipe()
                in_read, stdin_pipe = _held(theirs, read), PipeWriter(write, register=self.pipes)
            read, write = make_pipe()
            out_write, stdout_pipe = _held(theirs, write), PipeReader(read, register=self.pipes)
            if merge_stderr:
                err_write, read = out_write, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            else:
                read, write = make_pipe()
                err_write = _held(theirs, write)
            mine, end = socket_pair()
            theirs.enter_context(end)
            process = BoxProcess(
                self,
                name=f"process-{next(self._names)}",
                channel=Channel(mine),
                stdin=stdin_pipe,
                stdout=stdout_pipe,
                stderr=PipeReader(read, register=self.pipes),
            )
            await self._supervise(
                process, message, descriptors=[end.fileno(), in_read, out_write, err_write], argv0=argv[0]
            )
        return process

    async def open_session(self) -> BoxSession:
        """Opens a shell session.

        Raises:
            BoxSpawnError: There is no shell or no work directory.
            BoxLostError: The box has gone.
        """
        mine, theirs = socket_pair()
        session = BoxSession(self, name=f"session-{next(self._names)}", channel=Channel(mine))
        with theirs:
            message = {"kind": "session", "env": self.environment(None), "directory": self.workdir}
            await self._supervise(session, message, descriptors=[theirs.fileno()], argv0="sh")
        return session

    def environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        """Returns the whole environment of a process started now.

        Raises:
            BoxSpawnError: A name or a value cannot be given to a process.
        """
        networked = {}
        if self._proxy.policy.mode != "none":
            networked = network_environment(PROXY_PORT, direct=self._ways.plan.hosts)
        return checked({**self._surroundings, **networked, **self._env, **(env or {})})

    def update_env(self, values: Mapping[str, str], *, unset: Sequence[str] = ()) -> None:
        """Changes the environment of what is started later."""
        for name in unset:
            self._env.pop(name, None)
        self._env.update(values)

    async def set_network(self, policy: NetworkPolicy) -> None:
        """Changes what may be reached, at once and for open connections too.

        Processes that were started while the box had no network do not have the proxy in their environment.
        """
        await self._proxy.set_policy(policy)
        await self._open_proxy()

    async def connect(self, port: int) -> tuple[int, int]:
        """Not offered by this runtime yet."""
        raise NotImplementedError("the local platform cannot connect to ports of a box yet")

    async def listening_ports(self) -> Sequence[int]:
        """Returns the TCP ports on which programs of the box listen; the platform's own are left out."""
        answer = await self.control.ask("ports")
        ports = answer.get("ports")
        numbers = [whole_number(port, low=1, high=65535) for port in ports] if isinstance(ports, list) else []
        return [port for port in numbers if port is not None]

    async def usage(self) -> BoxUsage:
        """Measures what the box uses now."""
        answer = await self.control.ask("usage")
        resident = whole_number(answer.get("memory"), low=0, high=1 << 62) or 0
        memory = self._account.memory_used()
        return BoxUsage(
            memory=resident if memory is None else memory,
            disk=await self._measure_disk(),
            processes=whole_number(answer.get("processes"), low=0, high=1 << 31) or 0,
        )

    async def alive(self) -> bool:
        """True if the agent answers within a second."""
        try:
            await self.control.ask("ping", seconds=1.0)
        except (BoxLostError, TimeoutError):
            return False
        return True

    async def stop(self, *, force: bool = False) -> None:
        """Ends every process and the box; its files stay."""
        await asyncio.shield(asyncio.ensure_future(self._stop(force=force)))

    async def wait(self) -> str:
        """Waits until the box has ended; returns why."""
        return await asyncio.shield(self._gone)

    # What follows is for the runtime and the units of this box.

    @property
    def disk_limit(self) -> int:
        """Bytes the writable directory may hold."""
        return self.spec.disk

    @property
    def busy(self) -> bool:
        """True while any process or session of the box lives."""
        return bool(self._units) and not self.ended

    async def set_up(
        self,
        *,
        limits: Mapping[str, int],
        watch_memory: int,
        seconds: float,
        prepare_network: Callable[[RoutePlan], Coroutine[Any, Any, None]],
    ) -> None:
        """Waits for the agent, tells it the limits, makes the work directory and opens the ways out.

        Args:
            limits: See ``process_limits``.
            watch_memory: Bytes above which the agent kills; 0 where the kernel does.
            seconds: How long each step may take.
            prepare_network: Does what the box's connections need of its network that no process inside may do; awaited
                only if there is such a thing, while no program runs yet.

        Raises:
            BoxLostError: The agent did not come up, or the work directory cannot be made.
            RuntimeFault: A connection cannot be offered; the text names it.
            TimeoutError: It took longer than ``seconds``.
        """
        async with asyncio.timeout(seconds):
            await asyncio.shield(self._ready)
        answer = await self.control.ask(
            "setup", limits=dict(limits), watch_memory=watch_memory, directory=self.workdir, seconds=seconds
        )
        if answer.get("problem"):
            raise BoxLostError(f"cannot make the work directory {self.workdir!r}: {str(answer['problem'])[:200]}")
        await self._open_proxy()
        if self._ways.plan.privileged:
            await prepare_network(self._ways.plan)
        await self._ways.tunnels.open(self.control.listen)

    def kills(self) -> Kills:
        """Returns how many processes have been killed for memory and disk so far."""
        return Kills(memory=self._account.oom_kills() + self._watcher_kills, disk=self._disk_kills)

    async def settled_kills(self) -> Kills:
        """As ``kills``, sure to contain what has been told before a process was seen to end."""
        if self._account.watched and not self.ended:
            # The agent tells before it kills, but on another socket than the end: an answer proves it has been heard.
            await self.alive()
        return self.kills()

    async def kill_for_disk(self) -> None:
        """Ends every process because the writable directory holds too much."""
        self._disk_kills += 1
        with contextlib.suppress(BoxLostError, TimeoutError):
            await self.control.ask("kill_all", seconds=_EXIT_SECONDS)

    async def _supervise(self, unit: Unit, message: dict[str, Any], *, descriptors: list[int], argv0: str) -> None:
        try:
            await self.control.tell({"do": "supervise", "unit": unit.name, **message}, descriptors=descriptors)
            self._units[unit.name] = unit
            task = asyncio.create_task(self._watch(unit), name=f"box {self.spec.box_id}: {unit.name}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await unit.started(argv0=argv0, directory=message["directory"])
        except BaseException:
            unit.channel.close()
            unit.close_pipes()
            raise

    async def _watch(self, unit: Unit) -> None:
        try:
            await unit.watch()
        finally:
            self._units.pop(unit.name, None)

    async def _open_proxy(self) -> None:
        if self._proxy.policy.mode != "none" and not self._proxy.listening:
            await self._proxy.serve(await self.control.listen("127.0.0.1", PROXY_PORT))

    def _event(self, message: Mapping[str, Any]) -> None:
        event = message.get("event")
        if "ready" in message and not self._ready.done():
            self._ready.set_result(None)
        elif event == "ended":
            unit = self._units.get(str(message.get("unit")))
            if unit is not None:
                unit.bury()
        elif event == "memory":
            self._watcher_kills += 1
        elif event == "fault":
            self._sentence = f"the box's agent failed: {str(message.get('text', ''))[:500]}"

    def _agent_ended(self, sentence: str) -> None:
        self.ended = True
        if not self._stopping and self._sentence == _AGENT_ENDED:
            self._sentence = sentence
        if not self._ready.done():
            self._ready.set_exception(BoxLostError(sentence))
            self._ready.exception()
        for unit in self._units.values():
            unit.bury()

    async def _stop(self, *, force: bool) -> None:
        if not self.ended:
            self._stopping = True
            self._sentence = "the box was stopped"
            if not force:
                with contextlib.suppress(BoxLostError, TimeoutError):
                    await self.control.ask("terminate", seconds=_EXIT_SECONDS)
                    async with asyncio.timeout(_GRACE_SECONDS):
                        await asyncio.shield(self._serving)
        self._channel.close()
        await asyncio.shield(self._burying)

    async def _bury(self) -> None:
        """Waits for the end of the agent and ends everything that belongs to the box."""
        await asyncio.shield(self._serving)
        self._channel.close()
        try:
            await self.await_exit()
        finally:
            await self._ways.close()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if not self._stopping and self._account.oom_kills():
                self._sentence += "; the kernel has killed processes of this box for memory"
            await self._on_end(self)
            self._gone.set_result(self._sentence)

    async def await_exit(self) -> None:
        """Returns when nothing of the box is left; called once, when its agent has hung up or been hung up on.

        Kills what does not follow its agent.
        """
        raise NotImplementedError


def _held(stack: contextlib.ExitStack, descriptor: int) -> int:
    """Has ``descriptor`` closed when the stack ends."""
    stack.callback(os.close, descriptor)
    return descriptor
