"""What compilers and runtimes said, as data: pure parsers over the output of a phase.

Each tool has one parser. Phases name the parsers that read their output, so a program that prints text looking like a
compiler's error while it runs makes none.
"""

from sandbox.diagnostics.ansi import strip_ansi
from sandbox.diagnostics.causes import with_cause
from sandbox.diagnostics.registry import MAX_DIAGNOSTICS, PARSERS, find_diagnostics, find_unreachable_database

__all__ = ["MAX_DIAGNOSTICS", "PARSERS", "find_diagnostics", "find_unreachable_database", "strip_ansi", "with_cause"]
