"""The six queries of the Spring examples against real servers, with the class path of the templates, outside of a box.

What a caller gets is held by the tests with sandboxes; this one tells whether a wrong answer is the program's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.databases.maven import class_path, java_home
from tests.databases.server import Server
from tests.scratch import scratch_directory

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
"""The libraries have to be fetched once, and a Neo4j server takes ten seconds to start."""

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TEMPLATES = ROOT / "sandbox/builtin/java"


@pytest.fixture
def scratch() -> Iterator[Path]:
    directory = scratch_directory()
    yield directory
    shutil.rmtree(directory)


def settings(server: Server) -> dict[str, str]:
    """Spring's own names for where the server is."""
    if server.kind == "mongodb":
        return {"SPRING_MONGODB_URI": server.url}
    return {
        "SPRING_NEO4J_URI": f"bolt://{server.host}:{server.port}",
        "SPRING_NEO4J_AUTHENTICATION_USERNAME": server.user,
        "SPRING_NEO4J_AUTHENTICATION_PASSWORD": server.password,
    }


@pytest.mark.parametrize("server", ["mongodb", "neo4j"], indirect=True)
async def test_the_example_gives_the_expected_result(server: Server, scratch: Path) -> None:
    home = java_home()
    assert home is not None
    template = TEMPLATES / f"spring-data-{server.kind}"
    libraries = await asyncio.to_thread(class_path, template / "pom.xml", home=home, scratch=scratch)
    source = EXAMPLES / f"java-spring-{server.kind}-orders/Application.java"
    options = ["-encoding", "UTF-8", "-proc:none", "-parameters", "-cp", libraries, "-d", str(scratch)]
    compiler = await asyncio.create_subprocess_exec(home / "bin/javac", *options, source, stderr=PIPE)
    assert (await compiler.communicate())[1] == b""
    result = scratch / "result.json"
    environ = {
        **os.environ,
        "TZ": "UTC",
        "SPRING_CONFIG_LOCATION": f"file:{template}/",
        f"{'MONGO' if server.kind == 'mongodb' else 'NEO4J'}_RESULTS_PATH": str(result),
        **settings(server),
    }
    program = await asyncio.create_subprocess_exec(
        *(home / "bin/java", "-cp", f"{libraries}:{scratch}", "orders.Application"),
        env=environ,
        stdout=PIPE,
        stderr=PIPE,
    )
    told = await program.communicate()
    assert program.returncode == 0, told
    assert orjson.loads(result.read_bytes()) == orjson.loads((EXAMPLES / "orders-expected.json").read_bytes())
