"""The runtime that isolates with containers of a Docker engine on this machine; ``FROM image`` means that image."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import docker_images
from . import docker_labels as labels
from .agent_box import HOME, AgentBox, BoxParts
from .channel import Channel
from .disk_watch import DiskWatch
from .docker_box import ContainerAccount, DockerBox, account_of
from .docker_container import container_config, container_limits, made_at, outdated, refuse_other_network
from .docker_engine import Engine, EngineError
from .docker_handover import hand_over
from .docker_images import Images, Prepared
from .docker_launch import START_SECONDS, complaint, launch
from .docker_network import prepare_network
from .docker_places import DockerPlaces
from .docker_probe import probe
from .endpoints import RoutePlan
from .environment import base_environment
from .errors import BoxLostError, RuntimeFault, RuntimeUnavailableError
from .interface import BoxSpec, Runtime
from .kit import build_kit
from .layers import delete_tree, measured
from .limits import process_limits
from .pipes import PipeEnd
from .places import checked_identity
from .policy import PolicyError, parse_networks
from .resolver import Resolver
from .ways_out import WaysOut, ways_out

_log = logging.getLogger(__name__)


class DockerRuntime(Runtime):
    """Boxes as containers; see ``Runtime``.

    The engine must run on this machine: the agent in a container reaches the server by a socket that is mounted there.
    What holds a box is Docker's (namespaces, no capabilities, no new privileges, its system call filter) with our own
    filter on top. All containers are without a network and reach out through the server's proxy.

    Args:
        data_directory: Where the kit and the sockets live; the files of boxes and layers are the engine's.
        default_image: What a box is made of when nobody has named an image.
        host: See ``Engine``.
        extra_public_cidrs: As for the bubblewrap runtime.
    """

    name = "docker"
    uses_images = True

    def __init__(
        self,
        *,
        data_directory: Path,
        default_image: str,
        host: str | None = None,
        extra_public_cidrs: Sequence[str] = (),
        own_port: int | None = None,
    ) -> None:
        self._own_port = own_port
        self._places = DockerPlaces(data_directory)
        self._host = host
        self._default_image = default_image
        self._extra_public_cidrs = tuple(extra_public_cidrs)
        self._boxes: dict[str, DockerBox] = {}
        self._starting: set[str] = set()
        self._on_disk: set[str] = set()
        self._removing: dict[str, asyncio.Task[None]] = {}
        self._chores: set[asyncio.Task[None]] = set()
        self._pipes: set[PipeEnd] = set()
        self._resolver = Resolver()
        self._engine: Engine | None = None
        self._watch: asyncio.Task[None] | None = None
        self._cpu_limited = True
        self._lock = -1

    async def prepare(self) -> None:
        """Checks the engine, writes what boxes need, ends what a killed server has left; see ``Runtime.prepare``."""
        try:
            self._extra_public = parse_networks(self._extra_public_cidrs)
        except PolicyError as error:
            raise RuntimeUnavailableError(f"extra_public_cidrs: {error}") from error
        try:
            await asyncio.to_thread(self._write)
            self._engine = engine = Engine(self._host)
            info = await engine.info()
            self._check(info)
            self._images = Images(engine, owner=self._places.owner)
            await self._take_over(engine)
            await self._images.load()
            root = Path(str(info.get("DockerRootDir", "/")))
            self._disk_watch = DiskWatch(root=root if await asyncio.to_thread(_can_be_asked, root) else Path("/"))
            self._watch = asyncio.create_task(self._disk_watch.run(), name="disk watch")
            await probe(self, engine, owner=self._places.owner)
        except EngineError as error:
            await self.close()
            raise RuntimeUnavailableError(
                f"{error}; UOM_RUNTIME=docker needs a running engine whose socket this user may open"
            ) from error
        except BaseException:
            await self.close()
            raise

    def _write(self) -> None:
        self._places.create()
        lock = os.open(self._places.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise RuntimeUnavailableError(
                f"another server uses the data directory {self._places.root}; stop it or choose another directory"
            ) from error
        self._lock = lock
        self._kit = build_kit(self._places, with_bwrap=False)
        self._places.use_kit(self._kit.directory)

    def _check(self, info: Mapping[str, Any]) -> None:
        if info.get("OSType") != "linux":
            raise RuntimeUnavailableError(f"the Docker engine runs {info.get('OSType')} containers; Linux is needed")
        for name, what in (("MemoryLimit", "memory"), ("PidsLimit", "the number of processes")):
            if not info.get(name):
                raise RuntimeUnavailableError(
                    f"the Docker engine cannot limit {what} of containers; it needs cgroups with that controller, "
                    f"which a rootless engine has only where they are delegated to its user"
                )
        self._cpu_limited = bool(info.get("CpuCfsQuota"))
        if not self._cpu_limited:
            _log.warning("the Docker engine cannot limit how much of the CPUs a container uses")

    async def _take_over(self, engine: Engine) -> None:
        """Learns which boxes there are and ends those of a killed server; there should be none alive."""
        for name, state, marks in await engine.containers([f"{labels.OWNER}={self._places.owner}"]):
            if marks.get(labels.ROLE) != "box":
                await engine.remove(name)
                continue
            if state not in ("created", "exited"):
                await engine.kill(name)
                await engine.wait(name)
            self._on_disk.add(marks[labels.BOX])
        for place in (self._places.trash, self._places.kit):
            for path in await asyncio.to_thread(lambda place: list(place.iterdir()), place):
                if path != self._kit.directory:
                    self._later(delete_tree(path), name=f"delete {path.name}")

    @property
    def fingerprint(self) -> str:
        """Changes with what is added to images; a snapshot of an image stays valid when the machine changes."""
        return hashlib.sha256(f"docker {docker_images.VERSION}".encode()).hexdigest()[:16]

    async def start(self, spec: BoxSpec) -> DockerBox:
        """Starts a box; see ``Runtime.start``.

        Raises:
            RuntimeFault: The box runs already, a layer is missing, the image cannot be had, or the policy cannot be
                enforced.
            RuntimeUnavailableError: The container did not come up; what it said is in the text.
        """
        box_id = checked_identity(spec.box_id, what="box id")
        ways = ways_out(spec, resolver=self._resolver, extra_public=self._extra_public, own_port=self._own_port)
        if box_id in self._boxes or box_id in self._starting:
            raise RuntimeFault(f"{box_id} is in use by a live sandbox")
        self._starting.add(box_id)
        try:
            if (removing := self._removing.get(box_id)) is not None:
                await asyncio.shield(removing)
            # Carried through when the caller is cancelled: the engine would go on all the same.
            return await self._carried_through(self._start(spec, ways))
        finally:
            self._starting.discard(box_id)

    async def _carried_through(self, starting: Coroutine[Any, Any, DockerBox]) -> DockerBox:
        task = asyncio.ensure_future(starting)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            if not task.cancelled() and task.exception() is None:
                await asyncio.shield(task.result().stop(force=True))
            raise

    async def _start(self, spec: BoxSpec, ways: WaysOut) -> DockerBox:
        engine, name = self._running_engine, self._container(spec.box_id)
        container = await engine.inspect(name) if spec.box_id in self._on_disk else None
        if container is None:
            prepared = await self._images.prepared(spec.image or self._default_image, spec.layers)
            await self._create(spec, prepared, name, ways.plan)
            environment: Mapping[str, str] = prepared.environment
        else:
            refuse_other_network(container, ways.plan)
            environment = docker_images.environment_of(container)
            limits = container_limits(spec, cpu_limited=self._cpu_limited)
            if outdated(container, limits):
                await engine.update(name, limits)
        channel, container = await launch(engine, name, sockets=self._places.sockets / spec.box_id)
        account = account_of(int((container.get("State") or {}).get("Pid") or 0))
        box = self._box(spec, channel, ways, account, environment, container)
        limits = process_limits(spec)
        # Outside a user namespace of its own the limit would count every process of this uid on the machine, those of
        # other boxes too. The number of processes is limited by the container's cgroup.
        del limits["processes"]
        try:
            # A little earlier than the kernel, whose reason nobody would hear of.
            watch = spec.memory - spec.memory // 16 if account.watched else 0
            await box.set_up(
                limits=limits,
                watch_memory=watch,
                seconds=START_SECONDS,
                prepare_network=lambda plan: prepare_network(
                    engine, name, plan, image=container["Image"], kit=self._kit, places=self._places
                ),
            )
        except (BoxLostError, TimeoutError, OSError) as error:
            await box.stop(force=True)
            raise RuntimeUnavailableError(await complaint(engine, name, str(error))) from error
        except BaseException:
            await box.stop(force=True)
            raise
        return box

    async def _create(self, spec: BoxSpec, prepared: Prepared, name: str, plan: RoutePlan) -> None:
        await asyncio.to_thread((self._places.sockets / spec.box_id).mkdir, exist_ok=True)
        config = container_config(
            spec, prepared, plan=plan, kit=self._kit, places=self._places, cpu_limited=self._cpu_limited
        )
        await self._running_engine.create(name, config)
        self._on_disk.add(spec.box_id)

    def _box(
        self,
        spec: BoxSpec,
        channel: Channel,
        ways: WaysOut,
        account: ContainerAccount,
        environment: Mapping[str, str],
        container: Mapping[str, Any],
    ) -> DockerBox:
        async def ended(box: AgentBox) -> None:
            self._disk_watch.remove(box)
            self._boxes.pop(spec.box_id, None)

        parts = BoxParts(
            spec=spec,
            channel=channel,
            account=account,
            surroundings={**base_environment(HOME, paths=()), **environment, "HOME": HOME},
            ways=ways,
            pipes=self._pipes,
            measure_disk=self._measure(spec.box_id, container),
            on_end=ended,
        )
        box = DockerBox(parts, engine=self._running_engine, container=self._container(spec.box_id))
        self._boxes[spec.box_id] = box
        self._disk_watch.add(box, measure=parts.measure_disk)
        return box

    def _measure(self, box_id: str, container: Mapping[str, Any]) -> Callable[[], Coroutine[Any, Any, int]]:
        """Returns what measures a box's writable layer.

        As root by what it takes on the disk. Otherwise the engine counts, and takes a file with holes for a full one.
        """
        upper = str(((container.get("GraphDriver") or {}).get("Data") or {}).get("UpperDir") or "")
        if upper and os.access(upper, os.R_OK | os.X_OK):
            return lambda: measured(Path(upper))

        async def ask() -> int:
            try:
                found = await self._running_engine.inspect(self._container(box_id), size=True)
            except EngineError as error:
                raise OSError(errno.EIO, str(error)) from error
            return int((found or {}).get("SizeRw") or 0)

        return ask

    async def freeze(self, box_id: str, layer_id: str) -> int:
        """Makes a layer of a stopped box, which then is gone; returns the bytes that the box has written.

        Raises:
            RuntimeFault: The box runs or is not there, or there is a layer of this id.
        """
        checked_identity(layer_id, what="layer id")
        name = self._container(checked_identity(box_id, what="box id"))
        self._refuse_live(box_id)
        container = await self._running_engine.inspect(name)
        if container is None:
            raise RuntimeFault(f"box {box_id!r} does not exist")
        if container["Config"]["Labels"].get(labels.BUILD) == "yes":
            await self._hand_over(box_id, since=made_at(container))
        size = await self._measure(box_id, container)()
        stack = container["Config"]["Labels"].get(labels.STACK, "")
        await self._images.freeze(name, layer_id, below=stack.split(",") if stack else [])
        await self.remove_box(box_id)
        return size

    async def _hand_over(self, box_id: str, *, since: float) -> None:
        box = await self.start(BoxSpec(box_id=box_id, build=True))
        try:
            await hand_over(box, self._kit.python, since=since)
        finally:
            await asyncio.shield(box.stop(force=True))

    async def remove_box(self, box_id: str) -> None:
        """Deletes a stopped box in the background.

        Raises:
            RuntimeFault: The box runs.
        """
        name = self._container(checked_identity(box_id, what="box id"))
        self._refuse_live(box_id)
        if box_id not in self._on_disk:
            return
        self._on_disk.discard(box_id)
        task = self._later(self._remove(name, self._places.sockets / box_id), name=f"delete box {box_id}")
        self._removing[box_id] = task
        task.add_done_callback(lambda _task: self._removing.pop(box_id, None))

    async def remove_layer(self, layer_id: str) -> None:
        """Deletes a layer in the background; the caller knows that no stopped box stands on it.

        Raises:
            RuntimeFault: A live box stands on it.
        """
        checked_identity(layer_id, what="layer id")
        if any(layer_id in box.spec.layers for box in self._boxes.values()):
            raise RuntimeFault(f"layer {layer_id!r} is in use by a live sandbox")
        self._images.layers.discard(layer_id)
        self._later(self._remove_layer(layer_id), name=f"delete layer {layer_id}")

    async def _remove_layer(self, layer_id: str) -> None:
        # What is being deleted may stand on it; the engine removes an image only when nothing does.
        await asyncio.gather(*self._removing.values())
        await self._images.remove_layer(layer_id)

    def boxes_on_disk(self) -> Sequence[str]:
        """Returns the ids of boxes that have a container, running or not."""
        return sorted(self._on_disk)

    def layers_on_disk(self) -> Sequence[str]:
        """Returns the ids of the layers."""
        return sorted(self._images.layers)

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
        await self.settle()
        if self._engine is not None:
            await self._engine.close()
            self._engine = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def settle(self) -> None:
        """Waits for the deletions that go on in the background."""
        while self._chores:
            await asyncio.gather(*self._chores)

    @property
    def _running_engine(self) -> Engine:
        if self._engine is None:
            raise RuntimeFault("the Docker runtime is not prepared, or has been closed")
        return self._engine

    def _container(self, box_id: str) -> str:
        return f"uom-sandbox-{self._places.owner}-{box_id}"

    def _refuse_live(self, box_id: str) -> None:
        if box_id in self._boxes or box_id in self._starting:
            raise RuntimeFault(f"{box_id} is in use by a live sandbox")

    async def _remove(self, name: str, sockets: Path) -> None:
        await self._running_engine.remove(name)
        with contextlib.suppress(OSError):
            await asyncio.to_thread(sockets.rmdir)

    def _later(self, chore: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        async def done() -> None:
            try:
                await chore
            except RuntimeFault as error:
                # Found and removed by the next start, or harmless: what is named in the text is only taking up space.
                _log.warning("%s: %s", name, error)

        task = asyncio.create_task(done(), name=name)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        return task


def _can_be_asked(directory: Path) -> bool:
    try:
        os.statvfs(directory)
    except OSError:
        return False
    return True
