"""A database that did not answer, as its driver tells it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnreachableServer:
    """A database that did not answer.

    Attributes:
        product: ``MongoDB``, ``Neo4j``, ``PostgreSQL`` or ``SQL Server``.
        address: ``host:port`` as the driver names it; empty when it names none.
        reason: Why, in the driver's words; empty when it does not say.
    """

    product: str
    address: str
    reason: str

    def __str__(self) -> str:
        where = f" at {self.address}" if self.address else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.product}{where} did not answer{why}"
