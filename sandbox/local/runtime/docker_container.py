"""The configuration of the container that is a box, in the words of Docker's Engine API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from . import docker_labels as labels
from . import docker_socket
from .command_line import HIDDEN, READ_ONLY
from .docker_images import USER, Prepared
from .docker_places import DockerPlaces
from .endpoints import PRIVILEGED_BELOW, RoutePlan
from .errors import RuntimeFault
from .interface import MIB, BoxSpec
from .kit import FILTER, INSIDE, Kit
from .limits import task_limit, tmp_bytes

_CPU_PERIOD = 100_000
_CLOCK_MARGIN = 2.0
_RUN_BYTES = 4 * MIB
# What package managers need of root when a snapshot is built; all of it stays inside the container.
_BUILD_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETFCAP", "SETGID", "SETUID", "SYS_CHROOT"]
# Docker hides the first three and locks the last by itself, and takes a list here in place of its own.
_ALSO_HIDDEN = ("/proc/asound", "/proc/timer_stats", "/sys/firmware", "/sys/devices/virtual/powercap", "/proc/acpi")


def container_config(
    spec: BoxSpec, prepared: Prepared, *, plan: RoutePlan, kit: Kit, places: DockerPlaces, cpu_limited: bool
) -> dict[str, Any]:
    """Returns the body of ``POST /containers/create``.

    Args:
        spec: What was asked for.
        prepared: The image.
        plan: See ``RoutePlan``.
        kit: Tells how the agent is started.
        places: Tells what is mounted.
        cpu_limited: False where the kernel cannot limit the use of CPUs.
    """
    owner = 0 if spec.build else USER
    program, *words = kit.command
    words.append(docker_socket.PATH_INSIDE)
    if not spec.build:
        # Beside the engine's own filter. Package managers make use of calls that ours refuses.
        words.append(f"{INSIDE}/{FILTER}")
    size = tmp_bytes(spec)
    host = {
        "NetworkMode": "none",
        # The resolver of this machine, which Docker would write down, is nobody's business: the proxy resolves names.
        "Dns": ["127.0.0.1"],
        "DnsSearch": ["."],
        "IpcMode": "private",
        "CapDrop": ["ALL"],
        "CapAdd": _BUILD_CAPABILITIES if spec.build else [],
        "SecurityOpt": ["no-new-privileges"],
        "MaskedPaths": [*_ALSO_HIDDEN, *(f"/proc/{name}" for name in HIDDEN)],
        "ReadonlyPaths": [f"/proc/{name}" for name in READ_ONLY],
        "Init": False,
        "RestartPolicy": {"Name": "no"},
        # Only an agent that does not come up writes there.
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "64k", "max-file": "1"}},
        "ShmSize": size,
        "Tmpfs": {
            "/tmp": f"rw,exec,nosuid,nodev,size={size},mode=1777",  # noqa: S108 - of the container
            "/run": f"rw,noexec,nosuid,nodev,size={_RUN_BYTES},mode=0755,uid={owner},gid={owner}",
        },
        "Mounts": [
            _mount(str(places.current_kit / "root"), INSIDE),
            _mount(str(places.sockets / spec.box_id), docker_socket.INSIDE),
        ],
        **container_limits(spec, cpu_limited=cpu_limited),
        **container_network(plan),
    }
    return {
        "Image": prepared.name,
        "Entrypoint": [program],
        "Cmd": words,
        "User": f"{owner}:{owner}",
        # Of the agent, which an image's LD_PRELOAD or PYTHONPATH must not reach: a name without a value unsets.
        "Env": [f"PYTHONHOME={INSIDE}", *(name for name in prepared.declared if name != "PYTHONHOME")],
        "WorkingDir": "/",
        "Hostname": "sandbox",
        "Healthcheck": {"Test": ["NONE"]},
        "Labels": {
            labels.OWNER: places.owner,
            labels.ROLE: "box",
            labels.BOX: spec.box_id,
            labels.BUILD: "yes" if spec.build else "no",
        },
        "HostConfig": host,
    }


def container_limits(spec: BoxSpec, *, cpu_limited: bool) -> dict[str, int]:
    """Returns the limits that a container can also be given later; the size of its /tmp is not among them."""
    limits = {"Memory": spec.memory, "MemorySwap": spec.memory, "PidsLimit": task_limit(spec)}
    if cpu_limited:
        limits |= {"CpuPeriod": _CPU_PERIOD, "CpuQuota": spec.cpu * _CPU_PERIOD}
    return limits


def container_network(plan: RoutePlan) -> dict[str, Any]:
    """Returns what a container has for its connections, fixed when it is made."""
    # Programs ask for the address of their own host, too.
    hosts = [*(f"{name}:{address}" for address, name in plan.names), "sandbox:127.0.0.1"]
    lowest = {"net.ipv4.ip_unprivileged_port_start": str(plan.lowest_port)}
    return {"ExtraHosts": hosts, "Sysctls": lowest if plan.lowest_port < PRIVILEGED_BELOW else {}}


def refuse_other_network(container: Mapping[str, Any], plan: RoutePlan) -> None:
    """Checks that a container was made for these connections, which it has for its life.

    Raises:
        RuntimeFault: It was made for others.
    """
    made = container["HostConfig"]
    if any((made.get(name) or type(value)()) != value for name, value in container_network(plan).items()):
        raise RuntimeFault(
            "the connections of this sandbox are not those it was made with, and its container cannot get others: "
            "delete the sandbox and create it again"
        )


def outdated(container: Mapping[str, Any], limits: Mapping[str, int]) -> bool:
    """True if the engine knows other limits of a container."""
    return any(container["HostConfig"].get(name) != value for name, value in limits.items())


def made_at(container: Mapping[str, Any]) -> float:
    """Returns when a container was made, in seconds since the epoch, a little early for the kernel's coarser clock."""
    text = str(container["Created"])
    return datetime.fromisoformat(text[:19] + "+00:00").timestamp() - _CLOCK_MARGIN


def _mount(source: str, target: str) -> dict[str, Any]:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": True}
