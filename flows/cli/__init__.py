"""The command line ``uom-sandbox``.

What a command needs is imported when it runs: Prefect alone takes three to four seconds to import, and most commands
do without it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import sys
from collections.abc import Sequence

from flows.cli.arguments import parser
from flows.outcomes import EXIT_INFRASTRUCTURE, EXIT_INTERRUPTED, EXIT_USAGE
from sandbox.errors import ConfigurationError, SandboxError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: The words after the program's name; those of the process by default.

    Returns:
        The exit code; ``uom-sandbox validate --help`` lists them.
    """
    # At exit the interpreter would look through a million objects of Prefect for garbage: up to a second for nothing.
    atexit.register(gc.freeze)
    options = parser().parse_args(arguments)
    try:
        command = importlib.import_module(options.module)
        return int(command.run(options))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); there is nobody left to tell.
        sys.stderr.close()
        return EXIT_INTERRUPTED
    except ConfigurationError as error:
        print(f"uom-sandbox: {error}", file=sys.stderr)
        return EXIT_USAGE
    except SandboxError as error:
        print(f"uom-sandbox: {error}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE
