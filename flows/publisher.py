"""Sends artifacts to Prefect from a thread of its own, so that a run never waits for them.

The thread lives while there is something to send and a moment longer; the interpreter waits for it at exit, for at most
``EXIT_SECONDS``. Trouble with an artifact is a warning in the log, never a failed run.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client

logger = logging.getLogger(__name__)

EXIT_SECONDS: Final = 10.0
LINGER_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 10.0
WAITING_ARTIFACTS: Final = 500
_IDLE_POLL_SECONDS: Final = 0.1

Render = Callable[[], Any]


class Artifact:
    """One artifact of a run; publishing it again updates it in place.

    Attributes:
        key: Its stable key: lower-case letters, digits and dashes.
        type: ``markdown`` or ``table``.
        description: One line for the list of artifacts.
        flow_run_id: The run it belongs to.
    """

    def __init__(self, *, key: str, type: str, description: str, flow_run_id: UUID) -> None:
        self.key = key
        self.type = type
        self.description = description
        self.flow_run_id = flow_run_id
        self.id: str | None = None
        self.failed = False
        self.render: Render | None = None


class Publisher:
    """The queue and its thread.

    An artifact that is published again while it waits is sent once, with the newest content.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[tuple[Callable[[SyncPrefectClient], None], contextvars.Context]] = deque()
        self._artifacts: set[Artifact] = set()
        self._thread: threading.Thread | None = None
        self._busy = False

    def publish(self, artifact: Artifact, render: Render) -> None:
        """Queues an artifact; returns at once.

        Args:
            artifact: Which one.
            render: Returns its content; called in the thread, so it must read only what no longer changes.
        """
        with self._condition:
            artifact.render = render
            if artifact in self._artifacts or artifact.failed:
                return
            if len(self._waiting) >= WAITING_ARTIFACTS:
                logger.warning("the artifact %s is left out: %d others wait", artifact.key, len(self._waiting))
                return
            self._artifacts.add(artifact)
            self._put(lambda client: self._send(artifact, client))

    def describe_flow_run(self, flow_run_id: UUID, *, name: str, tags: Collection[str]) -> None:
        """Queues a name and tags for a flow run, which replace those it has; returns at once."""
        with self._condition:
            self._put(lambda client: _describe(client, flow_run_id, name, tags))

    def flush(self, timeout: float) -> bool:
        """Waits until everything is sent; returns whether it was, within ``timeout`` seconds."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._waiting and not self._busy, timeout)

    def _put(self, job: Callable[[SyncPrefectClient], None]) -> None:
        # The context carries the caller's Prefect settings, such as temporary ones.
        self._waiting.append((job, contextvars.copy_context()))
        if self._thread is None:
            # Not a daemon, so that what waits is sent when the program ends right after a run.
            self._thread = threading.Thread(target=self._run, name="uom-sandbox publisher", daemon=False)
            self._thread.start()
        self._condition.notify_all()

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
                        logger.warning("some artifacts were not sent before the program ended")
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
                    logger.warning("an artifact could not be sent: %s: %s", type(error).__name__, error)
                finally:
                    with self._condition:
                        self._busy = False
                        self._condition.notify_all()
        finally:
            if client is not None:
                client.__exit__(None, None, None)

    def _next(self) -> tuple[Callable[[SyncPrefectClient], None], contextvars.Context] | None:
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

    def _send(self, artifact: Artifact, client: SyncPrefectClient) -> None:
        with self._condition:
            self._artifacts.discard(artifact)
            render, artifact.render = artifact.render, None
        if render is None:
            return
        # Through the plain request: the client's own methods also emit an event with the whole content, each time.
        try:
            data = render()
            if artifact.id is None:
                body = {
                    "key": artifact.key,
                    "type": artifact.type,
                    "description": artifact.description,
                    "data": data,
                    "flow_run_id": str(artifact.flow_run_id),
                }
                artifact.id = client.request("POST", "/artifacts/", json=body).json()["id"]
            else:
                client.request("PATCH", "/artifacts/{id}", path_params={"id": artifact.id}, json={"data": data})
        except Exception:
            artifact.failed = True
            raise


def _describe(client: SyncPrefectClient, flow_run_id: UUID, name: str, tags: Collection[str]) -> None:
    client.update_flow_run(flow_run_id, name=name, tags=tags)


def _api_url() -> str:
    from prefect.settings import PREFECT_API_URL

    return str(PREFECT_API_URL.value() or "")


def _new_client() -> SyncPrefectClient:
    # Settings of its own, so that Prefect hands out a new client and not the run's, which is closed with the run.
    return get_client(sync_client=True, httpx_settings={"timeout": REQUEST_SECONDS})


PUBLISHER: Final = Publisher()
"""The process's publisher; its thread is started by the first artifact."""
