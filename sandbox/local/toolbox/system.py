"""What a sandbox says about itself: directories, version, ports, environment, metrics."""

from __future__ import annotations

import asyncio
import os
import time
from importlib.metadata import PackageNotFoundError, version

from aiohttp import web

from ..runtime.interface import Box
from ..wire_errors import wire_timestamp
from . import bodies
from .errors import daemon_error

_PORTS = range(3000, 10000)
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_STAT_LIMIT = 4 * 1024 * 1024


class System:
    """Answers about one box."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._last_sample: tuple[float, int] | None = None

    async def work_dir(self, _request: web.Request) -> web.Response:
        """``GET /work-dir``: where relative paths start."""
        return web.json_response({"dir": self._box.spec.workdir or self._box.home})

    async def home_dir(self, _request: web.Request) -> web.Response:
        """``GET /user-home-dir`` and its old name ``/project-dir``."""
        return web.json_response({"dir": self._box.home})

    async def version(self, _request: web.Request) -> web.Response:
        """``GET /version``: the cheapest question, so a good readiness probe."""
        return web.json_response({"version": _version()})

    async def ports(self, _request: web.Request) -> web.Response:
        """``GET /port``: TCP ports that something listens on."""
        return web.json_response({"ports": sorted(set(await self._box.listening_ports()))})

    async def port_in_use(self, request: web.Request) -> web.Response:
        """``GET /port/{port}/in-use``, for the ports that previews may use."""
        text = request.match_info["port"]
        if not text.isdecimal() or int(text) not in _PORTS:
            raise daemon_error(400, f"port must be {_PORTS.start} to {_PORTS.stop - 1}, not {text!r}")
        return web.json_response({"isInUse": int(text) in await self._box.listening_ports()})

    async def update_env(self, request: web.Request) -> web.Response:
        """``POST /env``: changes the environment of what starts later. Names are unset before others are set."""
        body = await bodies.read_object(request)
        if body.get("unsetValuePrefix"):
            raise daemon_error(501, "unsetValuePrefix is not supported; list the names in unset")
        self._box.update_env(bodies.environment(body, "set"), unset=bodies.texts(body, "unset"))
        return web.json_response({})

    async def metrics(self, _request: web.Request) -> web.Response:
        """``GET /system/metrics``: bytes, and CPU use since the previous call in percent of the box's CPUs.

        The page cache cannot be told apart per box, so ``memCache`` is 0.
        """
        usage = await self._box.usage()
        spec = self._box.spec
        now = time.time()
        return web.json_response(
            {
                "cpuCount": spec.cpu,
                "cpuUsedPct": await self._cpu_percent(),
                "memTotal": spec.memory,
                "memUsed": usage.memory,
                "memCache": 0,
                "diskTotal": spec.disk,
                "diskUsed": usage.disk,
                "diskFree": max(0, spec.disk - usage.disk),
                "timestamp": wire_timestamp(),
                "timestampUnix": int(now),
            }
        )

    async def _cpu_percent(self) -> float:
        ticks = await self._cpu_ticks()
        now = time.monotonic()
        last, self._last_sample = self._last_sample, (now, ticks)
        if last is None or now <= last[0]:
            return 0.0
        used = (ticks - last[1]) / _TICKS_PER_SECOND / (now - last[0]) / self._box.spec.cpu
        return round(min(100.0, max(0.0, used * 100)), 1)

    async def _cpu_ticks(self) -> int:
        """Returns the CPU time of the box's processes and of their ended children, in clock ticks."""
        process = await self._box.run(["sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null"], merge_stderr=True)
        text = bytearray()
        try:
            while (chunk := await process.stdout.read()) and len(text) < _STAT_LIMIT:
                text += chunk
            await process.wait()
        except asyncio.CancelledError:
            await asyncio.shield(process.kill())
            raise
        finally:
            process.stdout.close()
            process.stderr.close()
        # Fields 14 to 17 of proc(5), counted behind the program's name, which ends at the last ")".
        fields = (line.rpartition(b") ")[2].split() for line in text.splitlines())
        return sum(sum(map(int, values[11:15])) for values in fields if len(values) > 14)


def _version() -> str:
    try:
        return version("uom-sandbox")
    except PackageNotFoundError:  # run from a source tree
        return "0"
