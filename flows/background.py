"""A thread that sends what runs have to tell Prefect, so that no run waits for it.

The thread lives while there is something to send and a moment longer; the interpreter waits for it at exit, for at most
``EXIT_SECONDS``. Trouble with sending is a warning in the log, never a failed run.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from prefect.client.orchestration import SyncPrefectClient, get_client

logger = logging.getLogger(__name__)

EXIT_SECONDS: Final = 10.0
LINGER_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 10.0
_IDLE_POLL_SECONDS: Final = 0.1

Job = Callable[[SyncPrefectClient], None]


class Sender:
    """A queue of jobs and the thread that does them one after another, with a client that it keeps open.

    Args:
        name: Name of the thread.
        subject: What is sent, for the log, such as ``an artifact``.
    """

    def __init__(self, name: str, *, subject: str) -> None:
        self._name = name
        self._subject = subject
        self._condition = threading.Condition()
        self._waiting: deque[tuple[Job, contextvars.Context]] = deque()
        self._thread: threading.Thread | None = None
        self._busy = False

    def put(self, job: Job) -> None:
        """Queues a job; returns at once."""
        with self._condition:
            # The context carries the caller's Prefect settings, such as temporary ones.
            self._waiting.append((job, contextvars.copy_context()))
            if self._thread is None:
                # Not a daemon, so that what waits is sent when the program ends right after a run.
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=False)
                self._thread.start()
            self._condition.notify_all()

    def flush(self, timeout: float) -> bool:
        """Waits until everything is sent; returns whether it was, within ``timeout`` seconds."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._waiting and not self._busy, timeout)

    def _run(self) -> None:
        client: SyncPrefectClient | None = None
        client_url: str | None = None
        exit_deadline: float | None = None
        try:
            while True:
                job = self._next()
                if job is None:
                    return
                if not threading.main_thread().is_alive():
                    exit_deadline = exit_deadline or time.monotonic() + EXIT_SECONDS
                    if time.monotonic() > exit_deadline:
                        logger.warning("%s was not sent before the program ended", self._subject)
                        return
                work, context = job
                try:
                    url = context.run(_api_url)
                    if client is None or url != client_url:
                        if client is not None:
                            client.__exit__(None, None, None)
                            client = None
                        client = context.run(_new_client)
                        client.__enter__()
                        client_url = url
                    context.run(work, client)
                except Exception as error:
                    logger.warning("%s could not be sent: %s: %s", self._subject, type(error).__name__, error)
                finally:
                    with self._condition:
                        self._busy = False
                        self._condition.notify_all()
        finally:
            if client is not None:
                client.__exit__(None, None, None)

    def _next(self) -> tuple[Job, contextvars.Context] | None:
        """The next job, or ``None`` when the thread shall end; the thread is then already forgotten."""
        deadline = time.monotonic() + LINGER_SECONDS
        with self._condition:
            while not self._waiting:
                if time.monotonic() > deadline or not threading.main_thread().is_alive():
                    self._thread = None
                    return None
                self._condition.wait(_IDLE_POLL_SECONDS)
            self._busy = True
            return self._waiting.popleft()


def _api_url() -> str:
    from prefect.settings import PREFECT_API_URL

    return str(PREFECT_API_URL.value() or "")


def _new_client() -> SyncPrefectClient:
    # Settings of its own, so that Prefect hands out a new client and not the run's, which is closed with the run.
    return get_client(sync_client=True, httpx_settings={"timeout": REQUEST_SECONDS})
