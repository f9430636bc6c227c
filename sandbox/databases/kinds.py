"""The kinds of databases: one row each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class DatabaseKind(StrEnum):
    """A database product."""

    POSTGRESQL = "postgresql"
    SQLSERVER = "sqlserver"
    SQLITE = "sqlite"
    MONGODB = "mongodb"
    NEO4J = "neo4j"

    @property
    def product(self) -> str:
        """Its name as people write it."""
        return KINDS[self].product

    @property
    def relational(self) -> bool:
        """Whether programs take a connection string of ADO.NET for it."""
        return KINDS[self].variable == CONNECTION_STRING


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """What is fixed about a kind.

    Attributes:
        product: Its name as people write it.
        port: TCP port its servers listen on unless told otherwise; ``None`` for a file.
        variable: Environment variable in which programs look for the address.
        form: What an address looks like, for error texts.
    """

    product: str
    port: int | None
    variable: str
    form: str


CONNECTION_STRING: Final = "CONNECTION_STRING"

KINDS: Final = {
    DatabaseKind.POSTGRESQL: KindRow(
        product="PostgreSQL",
        port=5432,
        variable=CONNECTION_STRING,
        form="Host=…;Port=5432;Database=…;Username=…;Password=… or postgresql://…",
    ),
    DatabaseKind.SQLSERVER: KindRow(
        product="SQL Server",
        port=1433,
        variable=CONNECTION_STRING,
        form="Server=…,1433;Database=…;User ID=…;Password=…",
    ),
    DatabaseKind.SQLITE: KindRow(
        product="SQLite", port=None, variable=CONNECTION_STRING, form="Data Source=shop.db or shop.db"
    ),
    DatabaseKind.MONGODB: KindRow(
        product="MongoDB", port=27017, variable="MONGODB_URI", form="mongodb://host:27017/database"
    ),
    DatabaseKind.NEO4J: KindRow(
        product="Neo4j", port=7687, variable="NEO4J_URI", form="bolt://host:7687 or neo4j://host:7687"
    ),
}
