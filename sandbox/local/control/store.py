"""Records on disk: SQLite in WAL mode, used by one worker thread so that the event loop never waits for a disk.

A committed transaction survives ``kill -9`` of the process. Calls are carried out in the order in which they were made.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from .records import BuildRecord, Record, SandboxRecord, SnapshotRecord, document

T = TypeVar("T")

SCHEMA_VERSION = 1

_TABLES = {SandboxRecord: "sandboxes", SnapshotRecord: "snapshots", BuildRecord: "builds"}


class StoreError(Exception):
    """The state file cannot be used; the text says why and what to do."""


class Store:
    """The state file of one platform.

    Args:
        path: The SQLite file; made if absent, readable by its owner only.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="uom-store")
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Opens or makes the file.

        Raises:
            StoreError: The file is damaged, or was written by a newer version.
        """
        try:
            self._connection = await self._call(self._connect)
        except sqlite3.Error as error:
            raise StoreError(
                f"the state file {self._path} cannot be used: {error}; `uom-sandbox platform reset` starts afresh"
            ) from error

    async def save(self, *records: Record) -> None:
        """Writes the records as they are now, in one transaction."""
        rows = [(_TABLES[type(record)], record.id, json.dumps(document(record))) for record in records]
        await self._call(lambda: self._write(rows))

    async def remove(self, record: Record) -> None:
        """Forgets a record; one that is not there is fine."""
        table = _TABLES[type(record)]
        await self._call(lambda: self._delete(table, record.id))

    async def sandboxes(self) -> Sequence[SandboxRecord]:
        """Returns every sandbox on file."""
        return [SandboxRecord.load(json.loads(body)) for body in await self._call(lambda: self._bodies("sandboxes"))]

    async def snapshots(self) -> Sequence[SnapshotRecord]:
        """Returns every snapshot on file."""
        return [SnapshotRecord.load(json.loads(body)) for body in await self._call(lambda: self._bodies("snapshots"))]

    async def builds(self) -> Sequence[BuildRecord]:
        """Returns every build on file."""
        return [BuildRecord.load(json.loads(body)) for body in await self._call(lambda: self._bodies("builds"))]

    async def ping(self) -> None:
        """Raises if the file does not answer."""
        await self._call(lambda: self._open_connection().execute("SELECT 1").fetchone())

    async def close(self) -> None:
        """Finishes what was asked and closes the file. May be called twice."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await self._call(connection.close)
        self._thread.shutdown(wait=False)

    async def _call(self, work: Callable[[], T]) -> T:
        # Shielded: a caller that is cancelled leaves no half-known write; the thread finishes it anyway.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, work))

    def _connect(self) -> sqlite3.Connection:
        self._path.touch(mode=0o600, exist_ok=True)
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=True)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            self._check_version(version)
            for table in _TABLES.values():
                connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (id TEXT PRIMARY KEY, body TEXT NOT NULL)")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_version(self, version: int) -> None:
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"the state file {self._path} was written by a newer version (schema {version}, this one knows "
                f"{SCHEMA_VERSION}): update uom-sandbox"
            )

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError("the store is not open")
        return self._connection

    def _write(self, rows: Sequence[tuple[str, str, str]]) -> None:
        connection = self._open_connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            for table, key, body in rows:
                connection.execute(
                    f"INSERT INTO {table} (id, body) VALUES (?, ?) "  # noqa: S608 - our own table names
                    "ON CONFLICT (id) DO UPDATE SET body = excluded.body",
                    (key, body),
                )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _delete(self, table: str, key: str) -> None:
        self._open_connection().execute(f"DELETE FROM {table} WHERE id = ?", (key,))  # noqa: S608 - our own table names

    def _bodies(self, table: str) -> list[str]:
        rows = self._open_connection().execute(f"SELECT body FROM {table}")  # noqa: S608 - our own table names
        return [body for (body,) in rows]
