"""Loads the order database of the examples into a server of your own, or into an SQLite file.

    python examples/databases/load.py KIND URL [--replace]

    postgresql  postgresql://user:password@host:5432/shop    tables customers, products, orders, order_lines
    sqlite      path of a file                               the same tables
    mongodb     mongodb://user:password@host:27017/shop      collections customers, products, orders
    neo4j       bolt://user:password@host:7687 or neo4j://   (:Customer)-[:PLACED]->(:Order)-[:CONTAINS]->(:Product)

env:NAME in place of a URL takes it from that environment variable, so that a password is in no command line.

Everywhere the rows of orders-data.json are the same ones, with the types that the database has for them: dates are
dates (SQLite: ISO 8601 text; MongoDB: midnight UTC), a missing value is null (Neo4j: no property), and money is exact:
numeric(10,2) in PostgreSQL, Decimal128 in MongoDB, decimal text in SQLite, which is how EF Core keeps decimals
there, and whole cents in Neo4j, which has no decimals. Lines of an order are rows that join orders and products, or
documents inside of the order, or relationships.

Drivers: pip install 'uom-sandbox[databases]'
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

DATA = Path(__file__).resolve().parent.parent / "orders-data.json"
TABLES = ("customers", "products", "orders", "order_lines")
CONNECT_SECONDS = 5

SCHEMA = """
create table customers (id integer primary key, name text not null, city text, joined {date} not null);
create table products (id integer primary key, name text not null unique);
create table orders (id integer primary key, customer_id integer not null references customers,
    placed {date} not null, shipped {date}, note text);
create table order_lines (order_id integer not null references orders, product_id integer not null references products,
    quantity integer not null, price {money} not null, primary key (order_id, product_id));
"""

NEO4J_CUSTOMERS = "UNWIND $rows AS c CREATE (:Customer {id: c.id, name: c.name, city: c.city, joined: c.joined})"
NEO4J_PRODUCTS = "UNWIND $rows AS p CREATE (:Product {id: p.id, name: p.name})"
NEO4J_ORDERS = """
UNWIND $rows AS o MATCH (c:Customer {id: o.customer_id})
CREATE (c)-[:PLACED]->(:Order {id: o.id, placed: o.placed, shipped: o.shipped, note: o.note})
"""
NEO4J_LINES = """
UNWIND $rows AS l MATCH (o:Order {id: l.order_id}) MATCH (p:Product {id: l.product_id})
CREATE (o)-[:CONTAINS {quantity: l.quantity, cents: l.cents}]->(p)
"""


class LoadError(Exception):
    """What the user can do something about."""


@dataclass(frozen=True, slots=True)
class Customer:
    id: int
    name: str
    city: str | None
    joined: date


@dataclass(frozen=True, slots=True)
class Product:
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer_id: int
    placed: date
    shipped: date | None
    note: str | None


@dataclass(frozen=True, slots=True)
class Line:
    order_id: int
    product_id: int
    quantity: int
    price: Decimal


@dataclass(frozen=True, slots=True)
class Shop:
    """All rows, as tables."""

    customers: list[Customer]
    products: list[Product]
    orders: list[Order]
    lines: list[Line]

    @classmethod
    def read(cls, path: Path = DATA) -> Shop:
        document = json.loads(path.read_text(encoding="utf-8"))
        products = [Product(**row) for row in document["products"]]
        ids = {product.name: product.id for product in products}
        orders, lines = [], []
        for row in document["orders"]:
            shipped = row["shipped"] and date.fromisoformat(row["shipped"])
            orders.append(Order(row["id"], row["customerId"], date.fromisoformat(row["placed"]), shipped, row["note"]))
            lines += [
                Line(row["id"], ids[line["product"]], line["quantity"], Decimal(line["price"])) for line in row["lines"]
            ]
        customers = [Customer(**row | {"joined": date.fromisoformat(row["joined"])}) for row in document["customers"]]
        return cls(customers=customers, products=products, orders=orders, lines=lines)

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """Name of each table → its rows, in an order that keeps references whole."""
        return {
            "customers": [(row.id, row.name, row.city, row.joined) for row in self.customers],
            "products": [(row.id, row.name) for row in self.products],
            "orders": [(row.id, row.customer_id, row.placed, row.shipped, row.note) for row in self.orders],
            "order_lines": [(row.order_id, row.product_id, row.quantity, row.price) for row in self.lines],
        }


async def load_postgresql(url: str, shop: Shop, *, replace: bool) -> None:
    import asyncpg  # type: ignore[import-untyped]

    connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS)
    try:
        async with connection.transaction():
            query = (
                "select tablename from pg_tables where schemaname = current_schema() and tablename = any($1::text[])"
            )
            found = [row[0] for row in await connection.fetch(query, list(TABLES))]
            permitted(found, replace=replace)
            for table in reversed(TABLES):
                await connection.execute(f"drop table if exists {table}")
            await connection.execute(SCHEMA.format(date="date", money="numeric(10,2)"))
            for table, rows in shop.tables().items():
                await connection.copy_records_to_table(table, records=rows)
    finally:
        await connection.close(timeout=CONNECT_SECONDS)


async def load_sqlite(path: str, shop: Shop, *, replace: bool) -> None:
    await asyncio.to_thread(_load_sqlite, path, shop, replace=replace)


def _load_sqlite(path: str, shop: Shop, *, replace: bool) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("begin immediate")
        query = f"select name from sqlite_master where type = 'table' and name in {TABLES}"
        permitted([row[0] for row in connection.execute(query)], replace=replace)
        for table in reversed(TABLES):
            connection.execute(f"drop table if exists {table}")
        for statement in SCHEMA.format(date="text", money="text").split(";"):
            connection.execute(statement)
        for table, rows in shop.tables().items():
            places = ", ".join("?" * len(rows[0]))
            texts = [[str(value) if isinstance(value, date | Decimal) else value for value in row] for row in rows]
            connection.executemany(f"insert into {table} values ({places})", texts)
        connection.execute("commit")
    finally:
        connection.close()


async def load_mongodb(url: str, shop: Shop, *, replace: bool) -> None:
    from bson.decimal128 import Decimal128
    from pymongo import AsyncMongoClient

    def at_midnight(day: date | None) -> datetime | None:
        return day and datetime.combine(day, time(), UTC)

    names = {product.id: product.name for product in shop.products}
    lines: dict[int, list[dict[str, Any]]] = {order.id: [] for order in shop.orders}
    for row in shop.lines:
        line = {"product": names[row.product_id], "quantity": row.quantity, "price": Decimal128(row.price)}
        lines[row.order_id].append(line)
    collections: dict[str, list[dict[str, Any]]] = {
        "customers": [
            {"_id": row.id, "name": row.name, "city": row.city, "joined": at_midnight(row.joined)}
            for row in shop.customers
        ],
        "products": [{"_id": row.id, "name": row.name} for row in shop.products],
        "orders": [
            {
                "_id": row.id,
                "customerId": row.customer_id,
                "placed": at_midnight(row.placed),
                "shipped": at_midnight(row.shipped),
                "note": row.note,
                "lines": lines[row.id],
            }
            for row in shop.orders
        ],
    }
    limits = {"serverSelectionTimeoutMS": CONNECT_SECONDS * 1000, "connectTimeoutMS": CONNECT_SECONDS * 1000}
    async with AsyncMongoClient(url, **limits) as client:
        database = client.get_default_database("test")
        found = sorted(collections.keys() & set(await database.list_collection_names()))
        permitted(found, replace=replace)
        for name, documents in collections.items():
            await database.drop_collection(name)
            await database[name].insert_many(documents)


async def load_neo4j(url: str, shop: Shop, *, replace: bool) -> None:
    from neo4j import AsyncGraphDatabase

    address, user, password = without_credentials(url)
    rows: dict[str, list[dict[str, Any]]] = {
        NEO4J_CUSTOMERS: [
            {"id": row.id, "name": row.name, "city": row.city, "joined": row.joined} for row in shop.customers
        ],
        NEO4J_PRODUCTS: [{"id": row.id, "name": row.name} for row in shop.products],
        NEO4J_ORDERS: [
            {
                "id": row.id,
                "customer_id": row.customer_id,
                "placed": row.placed,
                "shipped": row.shipped,
                "note": row.note,
            }
            for row in shop.orders
        ],
        NEO4J_LINES: [
            {
                "order_id": row.order_id,
                "product_id": row.product_id,
                "quantity": row.quantity,
                "cents": int(row.price.scaleb(2)),
            }
            for row in shop.lines
        ],
    }

    async def fill(transaction: Any) -> None:
        counted = await transaction.run("MATCH (n:Customer|Order|Product) UNWIND labels(n) AS l RETURN DISTINCT l")
        permitted([record[0] async for record in counted], replace=replace)
        await transaction.run("MATCH (n:Customer|Order|Product) DETACH DELETE n")
        for statement, items in rows.items():
            await transaction.run(statement, rows=items)

    limits: dict[str, Any] = {"connection_timeout": CONNECT_SECONDS, "max_transaction_retry_time": CONNECT_SECONDS}
    # An empty database would warn that it has no such labels yet.
    limits["notifications_min_severity"] = "OFF"
    async with (
        AsyncGraphDatabase.driver(address, auth=(user, password), **limits) as driver,
        driver.session() as session,
    ):
        await session.execute_write(fill)


def without_credentials(url: str) -> tuple[str, str, str]:
    """Takes user and password out of a URL; Neo4j's driver wants them apart."""
    parts = urlsplit(url)
    user, password = unquote(parts.username or "neo4j"), unquote(parts.password or "")
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), user, password


def permitted(found: list[str], *, replace: bool) -> None:
    """Refuses to delete what somebody else may need."""
    if found and not replace:
        raise LoadError(f"{', '.join(sorted(found))}: already there; --replace deletes and loads anew")


LOADERS: dict[str, Callable[..., Awaitable[None]]] = {
    "postgresql": load_postgresql,
    "sqlite": load_sqlite,
    "mongodb": load_mongodb,
    "neo4j": load_neo4j,
}


async def load(kind: str, url: str, *, replace: bool = False) -> None:
    """Loads the rows into a database.

    Args:
        kind: A key of ``LOADERS``.
        url: Where it is, as in the table above.
        replace: Delete tables, collections and nodes of the same names first.

    Raises:
        LoadError: Something of these names is there already.
        Exception: What the driver raises.
    """
    await LOADERS[kind](url, Shop.read(), replace=replace)


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=LOADERS, help="which database it is")
    parser.add_argument("url", help="its URL or path, or env:NAME")
    parser.add_argument("--replace", action="store_true", help="delete what has the same names, then load")
    options = parser.parse_args()
    url = options.url
    if url.startswith("env:"):
        url = os.environ.get(url.removeprefix("env:"), "")
        if not url:
            parser.error(f"the environment variable {options.url.removeprefix('env:')} is not set")
    try:
        asyncio.run(load(options.kind, url, replace=options.replace))
    except ImportError as error:
        print(f"{error}: pip install 'uom-sandbox[databases]'", file=sys.stderr)
        return 1
    except Exception as error:
        print(f"{options.kind}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"{options.kind}: {', '.join(f'{len(rows)} {name}' for name, rows in Shop.read().tables().items())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
