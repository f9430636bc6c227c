"""Real servers, each started when a test first asks for it; the orders of the examples are in them."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import pytest_asyncio

from tests.databases import maven
from tests.databases.java_server import running_java_server
from tests.databases.postgresql import programs, running_postgresql
from tests.databases.server import Server, new_password
from tests.scratch import scratch_directory

LOADER = Path(__file__).parents[2] / "examples/databases/load.py"
NO_POSTGRESQL = "no PostgreSQL server on this machine"
NO_JDK = "no JDK of version 25 or newer on this machine"
NO_LIBRARIES = "Maven cannot fetch the libraries of {}"


@pytest.fixture(scope="session")
def loader() -> ModuleType:
    """The loader of the examples, which is a program and in no package."""
    specification = importlib.util.spec_from_file_location("uom_examples_load", LOADER)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


def _scratch() -> Iterator[Path]:
    directory = scratch_directory()
    yield directory
    shutil.rmtree(directory)


postgresql_scratch = pytest.fixture(scope="session", name="postgresql_scratch")(_scratch)
mongodb_scratch = pytest.fixture(scope="session", name="mongodb_scratch")(_scratch)
neo4j_scratch = pytest.fixture(scope="session", name="neo4j_scratch")(_scratch)
sqlite_scratch = pytest.fixture(scope="session", name="sqlite_scratch")(_scratch)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgresql(postgresql_scratch: Path, loader: ModuleType) -> AsyncIterator[Server]:
    """PostgreSQL as Debian packages it."""
    found = programs()
    if found is None:
        pytest.skip(NO_POSTGRESQL)
    async with running_postgresql(found, scratch=postgresql_scratch) as server:
        await loader.load("postgresql", server.url)
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def mongodb(mongodb_scratch: Path, loader: ModuleType) -> AsyncIterator[Server]:
    """A small server of MongoDB's protocol. It has no accounts, so nobody logs in.

    FerretDB 1.24 with SQLite behind it would have some, but ends connections at the first ``Decimal128`` and has no
    ``$lookup``, ``$addToSet``, ``$min``, ``$multiply`` and ``$dateToString``, which the examples need.
    """
    home = _jdk()
    try:
        async with running_java_server("MongoServer", "mongo-server.pom.xml", home=home, scratch=mongodb_scratch) as at:
            server = Server.at(at, kind="mongodb", path="/shop")
            await loader.load("mongodb", server.url)
            yield server
    except subprocess.CalledProcessError:
        pytest.skip(NO_LIBRARIES.format("mongo-java-server"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def neo4j(neo4j_scratch: Path, loader: ModuleType) -> AsyncIterator[Server]:
    """Neo4j's community edition, with its accounts switched on."""
    home = _jdk()
    password = new_password()
    data = neo4j_scratch / "data"
    data.mkdir()
    try:
        async with running_java_server(
            "Neo4jServer", "neo4j-server.pom.xml", data, home=home, scratch=neo4j_scratch, password=password
        ) as at:
            server = Server.at(at, kind="neo4j", user="neo4j", password=password)
            await loader.load("neo4j", server.url)
            yield server
    except subprocess.CalledProcessError:
        pytest.skip(NO_LIBRARIES.format("neo4j-harness"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sqlite(sqlite_scratch: Path, loader: ModuleType) -> bytes:
    """An SQLite file."""
    path = sqlite_scratch / "shop.db"
    await loader.load("sqlite", str(path))
    return await asyncio.to_thread(path.read_bytes)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Server:
    """The server that a parameter names, for ``indirect``."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Server)
    return found


def _jdk() -> Path:
    home = maven.java_home()
    if home is None:
        pytest.skip(NO_JDK)
    if shutil.which("mvn") is None:
        pytest.skip(maven.NEEDED)
    return home
