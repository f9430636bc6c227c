"""Sends artifacts, names and tags of runs to Prefect in the background."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient

from flows.background import Sender

logger = logging.getLogger(__name__)

WAITING_ARTIFACTS: Final = 500
FAILED_TRIES: Final = 3
"""An artifact that could not be sent so often is given up."""

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
        self.failures = 0
        self.render: Render | None = None


class Publisher(Sender):
    """The queue and its thread.

    An artifact that is published again while it waits is sent once, with the newest content.
    """

    def __init__(self) -> None:
        super().__init__("uom-sandbox publisher", subject="an artifact")
        self._artifacts: set[Artifact] = set()

    def publish(self, artifact: Artifact, render: Render) -> None:
        """Queues an artifact; returns at once.

        Args:
            artifact: Which one.
            render: Returns its content; called in the thread, so it must read only what no longer changes.
        """
        with self._condition:
            artifact.render = render
            if artifact in self._artifacts or artifact.failures >= FAILED_TRIES:
                return
            if len(self._waiting) >= WAITING_ARTIFACTS:
                logger.warning("the artifact %s is left out: %d others wait", artifact.key, len(self._waiting))
                return
            self._artifacts.add(artifact)
            self.put(lambda client: self._send(artifact, client))

    def describe_flow_run(self, flow_run_id: UUID, *, name: str, tags: Collection[str]) -> None:
        """Queues a name and tags for a flow run, which replace those it has; returns at once."""
        self.put(lambda client: _describe(client, flow_run_id, name, tags))

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
            artifact.failures += 1
            raise


def _describe(client: SyncPrefectClient, flow_run_id: UUID, name: str, tags: Collection[str]) -> None:
    client.update_flow_run(flow_run_id, name=name, tags=tags)


PUBLISHER: Final = Publisher()
"""The process's publisher; its thread is started by the first artifact."""
