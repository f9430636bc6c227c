"""Database servers of libraries from Maven, each in a JVM that ends with its standard input."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.databases.maven import class_path
from tests.databases.server import PATIENCE

SOURCES = Path(__file__).parent / "java"
PASSWORD_VARIABLE = "UOM_TEST_PASSWORD"


@asynccontextmanager
async def running_java_server(
    main: str, pom: str, *arguments: Path, home: Path, scratch: Path, password: str = ""
) -> AsyncIterator[str]:
    """Compiles and starts a class beside this file; gives the address that it prints.

    Args:
        main: Its name.
        pom: Name of the project with the libraries it needs.
        arguments: Its arguments.
        home: The JDK.
        scratch: An empty directory to work in.
        password: What to pass in the environment as ``PASSWORD_VARIABLE``.
    """
    libraries = await asyncio.to_thread(class_path, SOURCES / pom, home=home, scratch=scratch)
    compiler = await asyncio.create_subprocess_exec(
        *(str(home / "bin/javac"), "-encoding", "UTF-8", "-proc:none", "-cp", libraries),
        *("-d", str(scratch / "classes"), str(SOURCES / f"{main}.java")),
        stderr=PIPE,
    )
    _, said = await compiler.communicate()
    assert (compiler.returncode, said) == (0, b"")
    quiet = f"-Dlogback.configurationFile={SOURCES / 'logback.xml'}"
    process = await asyncio.create_subprocess_exec(
        *(str(home / "bin/java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", quiet),
        *("-cp", f"{libraries}:{scratch / 'classes'}", main, *map(str, arguments)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={**os.environ, PASSWORD_VARIABLE: password},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = ""
        async with asyncio.timeout(PATIENCE):
            while "://" not in address:
                line = await process.stdout.readline()
                assert line, f"{main} ended with exit code {await process.wait()}"
                address = line.decode().strip()
        rest = asyncio.create_task(process.stdout.read())
        try:
            yield address
        finally:
            process.stdin.close()
            await asyncio.gather(rest, process.wait())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
