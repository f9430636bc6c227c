"""What a benchmark reports, and how it is printed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table.

    Attributes:
        name: What was measured.
        samples: The values, in ``unit``.
        unit: ``ms``, ``s``, ``MB/s`` …
        target: What DESIGN asks for, as text; empty when there is none.
    """

    name: str
    samples: Sequence[float]
    unit: str = "ms"
    target: str = ""

    def row(self) -> tuple[str, str, str, str, str, str]:
        ordered = sorted(self.samples)
        p50 = statistics.median(ordered)
        p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
        return (self.name, str(len(ordered)), f"{p50:.3g}", f"{p95:.3g}", self.unit, self.target)


def print_table(figures: Sequence[Figure]) -> None:
    """Prints figures as an aligned table."""
    rows = [("what", "n", "p50", "p95", "unit", "target"), *(figure.row() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)
