"""Runs a coroutine of the command line: signals end it in order, and Prefect's own console log stays quiet."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def quiet_prefect() -> None:
    """Keeps Prefect's log lines off the terminal, where the program's output is; call before Prefect is imported."""
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    # What we have to say about the platform itself is not among them.
    warnings = logging.StreamHandler()
    warnings.setFormatter(logging.Formatter("uom-sandbox: %(message)s"))
    logging.getLogger("sandbox.connection").addHandler(warnings)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs to the end; Ctrl-C and SIGTERM cancel, wait for the clean-up, and raise ``KeyboardInterrupt``."""

    async def cancellable() -> T:
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await main

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except BaseException as error:
        # While a flow runs, SIGTERM is Prefect's, which raises an exception of its own; Prefect may not be imported.
        if type(error).__name__ == "TerminationSignal":
            raise KeyboardInterrupt from None
        raise
