"""Live events: who listens, and what they are told.

Names and payloads are those of Daytona's notification gateway, as the ``daytona`` SDK 0.226.1 subscribes to them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

QUEUE_LIMIT = 1024
"""Events a listener may lag behind before it is cut off; it reconnects and reads the states by GET."""


class Subscription:
    """One listener's queue of encoded events."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | None] = asyncio.Queue(maxsize=QUEUE_LIMIT + 1)

    def put(self, text: str) -> bool:
        """Queues an event; False if the listener lags too far behind."""
        if self._queue.qsize() >= QUEUE_LIMIT:
            return False
        self._queue.put_nowait(text)
        return True

    def end(self) -> None:
        """Ends the subscription after what is queued."""
        if not self._queue.full():
            self._queue.put_nowait(None)

    async def next(self) -> str | None:
        """Returns the next event, ``None`` at the end."""
        return await self._queue.get()


class LiveEvents:
    """Hands each event to every listener without ever waiting for one."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    def subscribe(self) -> Subscription:
        """Adds a listener; it must be unsubscribed."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Removes a listener. May be called twice."""
        self._subscriptions.discard(subscription)

    def emit(self, name: str, payload: Mapping[str, Any]) -> None:
        """Tells every listener; call it after the new state is visible to GET."""
        if not self._subscriptions:
            return
        text = json.dumps([name, payload], separators=(",", ":"))
        for subscription in tuple(self._subscriptions):
            if not subscription.put(text):
                self._subscriptions.discard(subscription)
                subscription.end()

    def close(self) -> None:
        """Ends every subscription."""
        for subscription in tuple(self._subscriptions):
            subscription.end()
        self._subscriptions.clear()
