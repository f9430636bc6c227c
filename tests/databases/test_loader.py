"""The loader of the examples against real servers: the same rows everywhere, and nothing deleted unasked."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from tests.databases.conftest import LOADER
from tests.databases.server import Server, closed_port

slow = [pytest.mark.slow, pytest.mark.timeout(180)]
COUNTS = {"customers": 6, "products": 6, "orders": 7, "order_lines": 12}


async def test_sqlite_holds_the_rows(tmp_path: Path, loader: ModuleType) -> None:
    import sqlite3

    path = tmp_path / "shop.db"
    await loader.load("sqlite", str(path))
    connection = sqlite3.connect(path)
    try:
        counts = {name: connection.execute(f"select count(*) from {name}").fetchone()[0] for name in COUNTS}
        assert counts == COUNTS
        line = connection.execute("select quantity, price, typeof(price) from order_lines where order_id = 104")
        assert line.fetchall() == [(3, "44.91", "text")]
        order = connection.execute("select placed, shipped, note from orders where id in (104, 105) order by id")
        assert order.fetchall() == [("2024-02-29", "2024-03-04", ""), ("2024-03-15", None, None)]
        assert connection.execute("pragma foreign_key_check").fetchall() == []
    finally:
        connection.close()


@pytest.mark.parametrize(
    "server", ["postgresql", pytest.param("mongodb", marks=slow), pytest.param("neo4j", marks=slow)], indirect=True
)
async def test_what_is_there_is_only_deleted_when_asked(server: Server, loader: ModuleType) -> None:
    with pytest.raises(loader.LoadError, match=r"already there; --replace deletes and loads anew"):
        await loader.load(server.kind, server.url)
    before = await READERS[server.kind](server)
    await loader.load(server.kind, server.url, replace=True)
    assert await READERS[server.kind](server) == before


async def test_postgresql_holds_the_rows(postgresql: Server) -> None:
    found = await read_postgresql(postgresql)
    assert {name: len(rows) for name, rows in found.items()} == COUNTS
    assert (3, "Ελένη Παπαδοπούλου", None, date(2023, 6, 30)) in found["customers"]
    assert (104, 3, date(2024, 2, 29), date(2024, 3, 4), "") in found["orders"]
    assert (105, 4, 100, Decimal("2.99")) in found["order_lines"]


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_mongodb_holds_the_rows(mongodb: Server) -> None:
    from bson.decimal128 import Decimal128

    found = await read_mongodb(mongodb)
    assert {name: len(rows) for name, rows in found.items()} == {"customers": 6, "products": 6, "orders": 7}
    (order,) = (row for row in found["orders"] if row["_id"] == 104)
    assert order == {
        "_id": 104,
        "customerId": 3,
        "placed": datetime(2024, 2, 29, tzinfo=UTC),
        "shipped": datetime(2024, 3, 4, tzinfo=UTC),
        "note": "",
        "lines": [{"product": "Keyboard", "quantity": 3, "price": Decimal128("44.91")}],
    }


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_neo4j_holds_the_rows(neo4j: Server) -> None:
    from neo4j.time import Date

    found = await read_neo4j(neo4j)
    assert len(found) == 12
    assert [3, "Ελένη Παπαδοπούλου", None, 104, Date(2024, 2, 29), Date(2024, 3, 4), "", 3, 4491, "Keyboard"] in found


async def read_postgresql(server: Server) -> dict[str, list[Any]]:
    connection = await asyncpg.connect(server.url)
    try:
        tables = {name: await connection.fetch(f"select * from {name} order by 1, 2") for name in COUNTS}
        return {name: [tuple(row) for row in rows] for name, rows in tables.items()}
    finally:
        await connection.close()


async def read_mongodb(server: Server) -> dict[str, list[Any]]:
    from pymongo import AsyncMongoClient

    async with AsyncMongoClient[dict[str, Any]](server.url, tz_aware=True) as client:
        database = client.get_default_database()
        names = sorted(await database.list_collection_names())
        return {name: [row async for row in database[name].find().sort("_id")] for name in names}


async def read_neo4j(server: Server) -> list[list[Any]]:
    from neo4j import AsyncGraphDatabase

    address = f"bolt://{server.host}:{server.port}"
    async with AsyncGraphDatabase.driver(address, auth=(server.user, server.password)) as driver:
        found = await driver.execute_query(
            "MATCH (c:Customer)-[:PLACED]->(o:Order)-[l:CONTAINS]->(p:Product) RETURN c.id, c.name, c.city, o.id, "
            "o.placed, o.shipped, o.note, l.quantity, l.cents, p.name ORDER BY o.id, p.id"
        )
        return [list(record.values()) for record in found.records]


READERS: dict[str, Any] = {"postgresql": read_postgresql, "mongodb": read_mongodb, "neo4j": read_neo4j}


def run_loader(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(LOADER), *arguments]
    return subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)


def test_the_command_takes_a_url_from_the_environment(tmp_path: Path) -> None:
    done = run_loader("sqlite", "env:SHOP_URL", SHOP_URL=str(tmp_path / "shop.db"))
    told = "sqlite: 6 customers, 6 products, 7 orders, 12 order_lines\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")
    again = run_loader("sqlite", str(tmp_path / "shop.db"))
    assert again.returncode == 1
    assert again.stderr.startswith("sqlite: LoadError: customers, order_lines, orders, products: already there;")


def test_the_command_tells_what_is_wrong() -> None:
    unset = run_loader("sqlite", "env:UOM_NOT_SET")
    assert unset.returncode == 2
    assert "the environment variable UOM_NOT_SET is not set" in unset.stderr
    down = run_loader("postgresql", f"postgresql://anna:open-sesame@localhost:{closed_port()}/shop")
    assert down.returncode == 1
    assert down.stderr.startswith("postgresql: ")
    assert "sesame" not in down.stderr
