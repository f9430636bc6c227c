"""A PostgreSQL server of this machine's own package, for a test session."""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import signal
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]

from tests.databases.server import PATIENCE, Server, closed_port, new_password

SETTINGS = {
    "listen_addresses": "localhost",
    "unix_socket_directories": "",
    "fsync": "off",
    "max_connections": "40",
    "shared_buffers": "16MB",
    "lc_messages": "C",
}
READY = b"database system is ready to accept connections"


def programs() -> Path | None:
    """Directory of the newest server's programs; Debian does not put them on the PATH."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda path: int(re.sub(r"\D", "", path.parent.name))) if found else None


def _account() -> dict[str, int | list[int]]:
    """Whom to run it as: PostgreSQL refuses to be root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@asynccontextmanager
async def running_postgresql(bin_directory: Path, *, scratch: Path) -> AsyncIterator[Server]:
    """An empty database ``shop`` on a server that asks for a password.

    Args:
        bin_directory: Where the server's programs are.
        scratch: An empty directory that other users can search.
    """
    account = _account()
    data = scratch / "data"
    data.mkdir(mode=0o700)
    password = new_password()
    password_file = data.parent / "password"
    password_file.write_text(password, encoding="utf-8")
    if account:
        for path in (data, password_file):
            os.chown(path, int(str(account["user"])), int(str(account["group"])))
    environ = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "UOM_TEST_SESSION": os.environ["UOM_TEST_SESSION"]}
    made = await asyncio.create_subprocess_exec(
        *(str(bin_directory / "initdb"), "-D", str(data), "-U", "shop", "-A", "scram-sha-256"),
        *(f"--pwfile={password_file}", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"),
        stdout=PIPE,
        stderr=PIPE,
        cwd=scratch,
        env=environ,
        **account,  # type: ignore[arg-type]
    )
    told = await made.communicate()
    assert made.returncode == 0, told
    password_file.unlink()
    port = closed_port()
    server = await asyncio.create_subprocess_exec(
        *(str(bin_directory / "postgres"), "-D", str(data), f"--port={port}"),
        *(f"--{name}={value}" for name, value in SETTINGS.items()),
        stderr=PIPE,
        cwd=scratch,
        env=environ,
        **account,  # type: ignore[arg-type]
    )
    assert server.stderr is not None
    try:
        said: list[bytes] = []
        async with asyncio.timeout(PATIENCE):
            while READY not in b"".join(said[-1:]):
                said.append(await server.stderr.readline())
                assert said[-1], f"the server ended with exit code {await server.wait()}: {said}"
        rest = asyncio.create_task(server.stderr.read())
        try:
            at = Server(kind="postgresql", host="localhost", port=port, user="shop", password=password, path="/shop")
            await _create_database(at)
            yield at
        finally:
            # "Fast shutdown": sessions are ended, nothing is waited for.
            server.send_signal(signal.SIGINT)
            await asyncio.gather(rest, server.wait())
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()


async def _create_database(at: Server) -> None:
    connection = await asyncpg.connect(
        host=at.host, port=at.port, user=at.user, password=at.password, database="postgres", ssl=False
    )
    try:
        await connection.execute("create database shop")
    finally:
        await connection.close()
