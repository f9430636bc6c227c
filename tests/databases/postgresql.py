"""A PostgreSQL server of this machine's own package, for a test session."""

from __future__ import annotations

import asyncio
import os
import pwd
import re
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
    "log_min_messages": "warning",
}


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
    settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
    server = await asyncio.create_subprocess_exec(
        *(str(bin_directory / "postgres"), "-D", str(data), f"--port={port}", *settings),
        stderr=(log := (scratch / "log").open("wb")),
        cwd=scratch,
        env=environ,
        **account,  # type: ignore[arg-type]
    )
    try:
        at = Server(kind="postgresql", host="localhost", port=port, user="shop", password=password, path="/shop")
        await _create_database(at, server, log=scratch / "log")
        yield at
    finally:
        if server.returncode is None:
            # "Fast shutdown": sessions are ended, nothing is waited for.
            server.send_signal(2)
        await server.wait()
        log.close()


async def _create_database(at: Server, server: asyncio.subprocess.Process, *, log: Path) -> None:
    """Creates it as soon as the server lets us in."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                connection = await asyncpg.connect(
                    host=at.host, port=at.port, user=at.user, password=at.password, database="postgres", ssl=False
                )
                break
            except (OSError, asyncpg.CannotConnectNowError):
                assert server.returncode is None, await asyncio.to_thread(log.read_text, encoding="utf-8")
                await asyncio.sleep(0.05)
    try:
        await connection.execute("create database shop")
    finally:
        await connection.close()
