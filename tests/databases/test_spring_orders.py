"""The six queries of the Spring examples against real servers, with the class path of the templates.

Sandboxes have no way to a server on this machine, so the programs run outside of one, as the snapshot would start them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from tests.databases.maven import NEEDED, class_path, java_home
from tests.scratch import scratch_directory

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
"""The libraries have to be fetched once, and a Neo4j server takes ten seconds to start."""

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
EXAMPLES = ROOT / "examples"
TEMPLATES = ROOT / "sandbox/builtin/java"


@pytest.fixture
def scratch() -> Iterator[Path]:
    directory = scratch_directory()
    yield directory
    shutil.rmtree(directory)


def resolved(pom: Path, *, home: Path, scratch: Path) -> str:
    work = scratch / pom.name
    work.mkdir()
    return class_path(pom, home=home, scratch=work)


def compiled(source: Path, *, home: Path, libraries: str, scratch: Path) -> Path:
    classes = scratch / source.stem
    options = ["-encoding", "UTF-8", "-proc:none", "-parameters", "-cp", libraries, "-d", str(classes)]
    done = subprocess.run([str(home / "bin/javac"), *options, str(source)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return classes


@asynccontextmanager
async def server(main: str, libraries: str, *, home: Path, scratch: Path) -> AsyncIterator[str]:
    """A server with the orders in it, from the source beside this file; gives its address."""
    classes = compiled(HERE / "java" / f"{main}.java", home=home, libraries=libraries, scratch=scratch)
    data = scratch / "data"
    data.mkdir()
    quiet = f"-Dlogback.configurationFile={HERE / 'java/logback.xml'}"
    process = await asyncio.create_subprocess_exec(
        *(home / "bin/java", "-Xmx512m", "-XX:TieredStopAtLevel=1", quiet, "-cp", f"{libraries}:{classes}", main),
        *(EXAMPLES / "orders-data.json", data),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = ""
        while "://" not in address:
            line = await process.stdout.readline()
            assert line, f"{main} ended with exit code {await process.wait()}"
            address = line.decode().strip()
        yield address
    finally:
        process.stdin.close()
        await asyncio.gather(process.stdout.read(), process.wait())


@pytest.mark.parametrize(
    ("database", "main", "pom"),
    [("mongodb", "MongoServer", "mongo-server.pom.xml"), ("neo4j", "Neo4jServer", "neo4j-server.pom.xml")],
)
async def test_the_example_gives_the_expected_result(database: str, main: str, pom: str, scratch: Path) -> None:
    home = java_home()
    if home is None:
        pytest.skip("no JDK of version 25 or newer on this machine")
    if shutil.which("mvn") is None:
        pytest.skip(NEEDED)
    template = TEMPLATES / f"spring-data-{database}"
    (scratch / "template").mkdir()
    libraries = class_path(template / "pom.xml", home=home, scratch=scratch / "template")
    # MongoDB's server comes without a client to load it, Neo4j's with everything.
    servers = resolved(HERE / "java" / pom, home=home, scratch=scratch)
    servers = f"{libraries}:{servers}" if database == "mongodb" else servers
    source = EXAMPLES / f"java-spring-{database}-orders/Application.java"
    classes = compiled(source, home=home, libraries=libraries, scratch=scratch)
    async with server(main, servers, home=home, scratch=scratch) as address:
        result = scratch / "result.json"
        environ = {
            **os.environ,
            "TZ": "UTC",
            "SPRING_CONFIG_LOCATION": f"file:{template}/",
            f"SPRING_{database.upper()}_URI": address,
            f"{'MONGO' if database == 'mongodb' else 'NEO4J'}_RESULTS_PATH": str(result),
        }
        program = await asyncio.create_subprocess_exec(
            *(home / "bin/java", "-cp", f"{libraries}:{classes}", "orders.Application"),
            env=environ,
            stdout=PIPE,
            stderr=PIPE,
        )
        told = await program.communicate()
    assert program.returncode == 0, told
    assert orjson.loads(result.read_bytes()) == orjson.loads((EXAMPLES / "orders-expected.json").read_bytes())
