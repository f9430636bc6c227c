"""The runtime that isolates with bubblewrap: no daemon, no image, no root needed."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import pwd
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .agent_box import HOME, AgentBox, BoxParts
from .base import build_base, hosts_table, toolchain_fingerprint
from .box import BubblewrapBox
from .command_line import BoxMounts
from .disk_watch import DiskWatch
from .endpoints import RoutePlan
from .environment import base_environment
from .errors import BoxLostError, RuntimeFault, RuntimeUnavailableError
from .interface import BoxSpec, Runtime
from .kit import build_kit
from .launch import Launch, Launcher
from .layers import BoxLock, Disks
from .limits import BoxLimits, CgroupParent, find_cgroups, process_limits, remove_parent, take_over, tmp_bytes
from .pipes import PipeEnd
from .places import Places, checked_identity
from .policy import PolicyError, parse_networks
from .predecessor import end_predecessors, forget, remember
from .probe import SCRIPT, unavailable_text
from .resolver import Resolver
from .toolchains import Toolchain, resolve_toolchains
from .ways_out import WaysOut, ways_out

DEFAULT_HOST_UID = 64321
_START_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforcement:
    """How this machine lets boxes be limited, for people who ask.

    Attributes:
        mode: ``user`` boxes run as the server's user, ``dropped`` root runs them as another uid.
        host_uid: That uid.
        memory: ``cgroup`` the kernel limits all processes of a box together; ``watched`` the agent adds them up every
            100 ms and kills the largest.
        cpu: ``cgroup`` or ``unlimited``: without a cgroup there is nothing that a box could not undo.
        disk: Measured from outside, see ``disk_watch``.
    """

    mode: Literal["user", "dropped"]
    host_uid: int
    memory: Literal["cgroup", "watched"]
    cpu: Literal["cgroup", "unlimited"]
    disk: Literal["watched"] = "watched"


class BubblewrapRuntime(Runtime):
    """Boxes by bubblewrap; see ``Runtime``.

    A server that runs as an ordinary user starts boxes as itself (mode U). A server that runs as root starts them as
    ``host_uid`` (mode R): root's uid, even without capabilities, still owns root's files, and a box under it could
    write to the kernel's settings (measured).

    Args:
        data_directory: Where layers and writable directories live. Not on an overlay file system; as root not below a
            directory that others cannot search.
        toolchains: Directories of the host that boxes see read-only at their own paths.
        host_uid: Mode R: the uid of every box outside; one that no account uses. Mode U: left out.
        extra_public_cidrs: Networks that the policies ``public`` and ``allow`` treat as public although they are
            private, such as that of a package mirror.
        own_port: Port of the platform's own API, which no connection of a box may lead to.
    """

    name = "bubblewrap"
    uses_images = False

    def __init__(
        self,
        *,
        data_directory: Path,
        toolchains: Sequence[Path] = (),
        host_uid: int | None = None,
        extra_public_cidrs: Sequence[str] = (),
        own_port: int | None = None,
    ) -> None:
        self._roots = tuple(toolchains)
        self._own_port = own_port
        self._extra_public_cidrs = tuple(extra_public_cidrs)
        self._host_uid = host_uid
        self._data_directory = data_directory
        self._boxes: dict[str, BubblewrapBox] = {}
        self._pipes: set[PipeEnd] = set()
        self._resolver = Resolver()
        self._toolchains: tuple[Toolchain, ...] = ()
        self._cgroups: CgroupParent | None = None
        self._watch: asyncio.Task[None] | None = None
        self._fingerprint = ""
        self._lock = -1

    async def prepare(self) -> None:
        """Checks the machine, writes what boxes need and proves it with a throw-away box; see ``Runtime.prepare``."""
        uid, dropped = self._choose_uid()
        self._places = Places(self._data_directory.absolute(), uid, dropped)
        try:
            self._extra_public = parse_networks(self._extra_public_cidrs)
        except PolicyError as error:
            raise RuntimeUnavailableError(f"extra_public_cidrs: {error}") from error
        try:
            await asyncio.to_thread(self._write)
            self._disks.discard_others(self._base)
            self._disks.discard_others(self._kit.directory)
            self._disks.empty_trash()
            self._disk_watch = DiskWatch(root=self._places.root)
            self._watch = asyncio.create_task(self._disk_watch.run(), name="disk watch")
            await self._probe()
        except BaseException:
            await self.close()
            raise

    def _choose_uid(self) -> tuple[int, bool]:
        own = os.geteuid()
        if own != 0:
            if self._host_uid not in {None, own}:
                raise RuntimeUnavailableError("only root can choose host_uid; leave it out")
            return own, False
        if self._host_uid is None:
            with contextlib.suppress(KeyError):
                name = pwd.getpwuid(DEFAULT_HOST_UID).pw_name
                raise RuntimeUnavailableError(
                    f"uid {DEFAULT_HOST_UID} belongs to the account {name}; set host_uid to one that no account uses"
                )
            return DEFAULT_HOST_UID, True
        if self._host_uid <= 0:
            raise RuntimeUnavailableError("host_uid must not be root's: sandboxes would own root's files")
        return self._host_uid, True

    def _write(self) -> None:
        self._places.create()
        self._take_data_directory()
        end_predecessors(self._places.state)
        self._disks = Disks(self._places)
        self._toolchains = resolve_toolchains(
            self._roots, data_directory=self._places.root, dropped=self._places.dropped
        )
        self._kit = build_kit(self._places)
        self._launcher = Launcher(self._places, kit=self._kit, toolchains=self._toolchains, pipes=self._pipes)
        self._fingerprint = toolchain_fingerprint(self._toolchains)
        self._base = build_base(self._places, self._toolchains)
        owner = hashlib.sha256(os.fsencode(self._places.root)).hexdigest()[:12]
        self._cgroups = find_cgroups(f"uom-sandbox-{owner}")
        take_over(self._cgroups, self._places.state / "cgroups")

    def _take_data_directory(self) -> None:
        lock = os.open(self._places.state / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise RuntimeUnavailableError(
                f"another server uses the data directory {self._places.root}; stop it or choose another directory"
            ) from error
        self._lock = lock

    async def _probe(self) -> None:
        """Runs a box with every option that real ones get: what this machine lacks shows here and not later."""
        box_id = "probe"
        self._disks.remove_box(box_id)
        text = ""
        try:
            box = await self.start(BoxSpec(box_id=box_id))
            try:
                process = await box.run(["/bin/sh", "-c", SCRIPT], merge_stderr=True)
                while len(text) < 1000 and (chunk := await process.stdout.read()):
                    text += chunk.decode("utf-8", "replace")
                status = await process.wait()
                process.close_pipes()
            finally:
                await box.stop(force=True)
        except RuntimeFault as error:
            # The probe asks for nothing unusual; what fails now fails for every box.
            raise RuntimeUnavailableError(str(error)) from error
        finally:
            self._disks.remove_box(box_id)
        if status.exit_code != 0:
            complaint = f"a test sandbox started, but its commands failed with {status.exit_code}: {text.strip()}"
            raise RuntimeUnavailableError(unavailable_text(complaint, data_directory=self._places.root))

    @property
    def fingerprint(self) -> str:
        """Changes when the toolchains of this machine change."""
        return self._fingerprint

    @property
    def enforcement(self) -> Enforcement:
        """How limits are enforced here; after ``prepare``."""
        groups = self._cgroups.directories if self._cgroups is not None else {}
        return Enforcement(
            mode="dropped" if self._places.dropped else "user",
            host_uid=self._places.uid,
            memory="cgroup" if "memory" in groups else "watched",
            cpu="cgroup" if "cpu" in groups else "unlimited",
        )

    async def start(self, spec: BoxSpec) -> BubblewrapBox:
        """Starts a box; see ``Runtime.start``.

        Raises:
            RuntimeFault: The box runs already, a layer is missing, or the policy cannot be enforced.
            RuntimeUnavailableError: bwrap refused; its own words are in the text.
        """
        checked_identity(spec.box_id, what="box id")
        ways = ways_out(spec, resolver=self._resolver, extra_public=self._extra_public, own_port=self._own_port)
        lock = self._disks.lock(spec.box_id)
        limits = BoxLimits(self._cgroups, spec.box_id)
        try:
            mounts = await asyncio.to_thread(self._make_ready, spec, limits, ways.plan)
            launch = self._launcher.launch(mounts)
        except BaseException:
            await limits.remove()
            lock.release()
            raise
        box = self._box(spec, launch, mounts=mounts, limits=limits, ways=ways, lock=lock)
        try:
            # The agent starts meanwhile; no program does before it is in its groups.
            agent = await launch.agent_pid()
            await asyncio.to_thread(self._register, spec, launch, limits, agent)
            await box.set_up(
                limits=process_limits(spec),
                watch_memory=spec.memory if limits.watched else 0,
                seconds=_START_SECONDS,
                prepare_network=lambda plan: self._launcher.prepare_network(plan, pid=agent),
            )
        except (BoxLostError, TimeoutError, OSError) as error:
            await box.stop(force=True)
            complaint = await launch.complaint() or str(error)
            raise RuntimeUnavailableError(unavailable_text(complaint, data_directory=self._places.root)) from error
        except BaseException:
            await box.stop(force=True)
            raise
        finally:
            launch.release()
        return box

    def _make_ready(self, spec: BoxSpec, limits: BoxLimits, plan: RoutePlan) -> BoxMounts:
        directory = self._disks.make_box(spec.box_id)
        mounts = BoxMounts(
            lowers=self._disks.lowers(self._base, spec.layers, box=directory),
            upper=directory / "up",
            work=directory / "work",
            toolchains=self._toolchains,
            stages=self._launcher.stages,
            tmp_bytes=tmp_bytes(spec),
            hosts=hosts_table(plan.names) if plan.names else None,
        )
        limits.create(spec)
        return mounts

    def _register(self, spec: BoxSpec, launch: Launch, limits: BoxLimits, agent: int) -> None:
        remember(self._places.state / f"{spec.box_id}.json", pid=launch.process.pid)
        limits.adopt(agent)

    def _box(
        self,
        spec: BoxSpec,
        launch: Launch,
        *,
        mounts: BoxMounts,
        limits: BoxLimits,
        ways: WaysOut,
        lock: BoxLock,
    ) -> BubblewrapBox:
        async def ended(box: AgentBox) -> None:
            self._disk_watch.remove(box)
            self._boxes.pop(spec.box_id, None)
            await limits.remove()
            self._disks.tidy(spec.box_id)
            forget(self._places.state / f"{spec.box_id}.json")
            lock.release()

        paths = [path for toolchain in self._toolchains for path in toolchain.search_paths]
        parts = BoxParts(
            spec=spec,
            channel=launch.channel,
            account=limits,
            surroundings=base_environment(HOME, paths=paths),
            ways=ways,
            pipes=self._pipes,
            measure_disk=lambda: self._disks.measure(mounts.upper),
            on_end=ended,
        )
        box = BubblewrapBox(parts, process=launch.process)
        self._boxes[spec.box_id] = box
        self._disk_watch.add(box, measure=parts.measure_disk)
        return box

    async def freeze(self, box_id: str, layer_id: str) -> int:
        """Freezes a stopped box; see ``Runtime.freeze``."""
        return await self._disks.freeze(box_id, layer_id)

    async def remove_box(self, box_id: str) -> None:
        """Deletes a stopped box; see ``Runtime.remove_box``.

        Raises:
            RuntimeFault: The box runs.
        """
        self._disks.remove_box(box_id)

    async def remove_layer(self, layer_id: str) -> None:
        """Deletes a layer; the caller knows that no stopped box stands on it.

        Raises:
            RuntimeFault: A live box stands on it.
        """
        if any(layer_id in box.spec.layers for box in self._boxes.values()):
            raise RuntimeFault(f"layer {layer_id!r} is in use by a live sandbox")
        self._disks.discard(self._disks.layer(layer_id))

    def boxes_on_disk(self) -> Sequence[str]:
        """Returns the ids of boxes that have a writable directory."""
        return sorted(path.name for path in self._places.boxes.iterdir())

    def layers_on_disk(self) -> Sequence[str]:
        """Returns the ids of the layers."""
        return sorted(path.name for path in self._places.layers.iterdir())

    async def close(self) -> None:
        """Stops every box at once and waits for deletions. May be called twice."""
        await asyncio.gather(*(box.stop(force=True) for box in list(self._boxes.values())))
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None
        for end in list(self._pipes):
            end.close()
        self._resolver.close()
        if self._lock < 0:
            return
        await self._disks.close()
        if self._cgroups is not None:
            remove_parent(self._cgroups)
        os.close(self._lock)
        self._lock = -1
