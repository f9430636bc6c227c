"""Questions to the agent of a box and what it tells unasked."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .channel import Channel
from .errors import BoxLostError

ANSWER_SECONDS = 10.0


class AgentControl:
    """The control channel: requests with an answer, orders without one, events.

    Args:
        channel: The channel to pid 1 of the box.
        on_event: Called with each message that answers nothing.
        on_end: Called once, with a sentence, when the agent has hung up or sent nonsense.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        on_event: Callable[[Mapping[str, Any]], None],
        on_end: Callable[[str], None],
    ) -> None:
        self._channel = channel
        self._on_event = on_event
        self._on_end = on_end
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ended = False

    async def serve(self) -> None:
        """Reads until the agent hangs up; run as a task by the box."""
        sentence = "the box's agent has ended"
        try:
            while (message := await self._channel.receive()) is not None:
                number = message.get("id")
                waiting = self._waiting.get(number) if isinstance(number, int) else None
                if waiting is None:
                    self._on_event(message)
                elif not waiting.done():
                    waiting.set_result(message)
        except BoxLostError as error:
            sentence = str(error)
        finally:
            self._ended = True
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(BoxLostError("the box has gone"))
            self._on_end(sentence)

    async def tell(self, message: Mapping[str, Any], *, descriptors: Sequence[int] = ()) -> None:
        """Sends an order that the agent does not answer.

        Raises:
            BoxLostError: The box has gone.
        """
        if self._ended:
            raise BoxLostError("the box has gone")
        await self._channel.send(message, descriptors=descriptors)

    async def ask(self, what: str, *, seconds: float = ANSWER_SECONDS, **values: Any) -> dict[str, Any]:
        """Sends a question and returns its answer.

        Raises:
            BoxLostError: The box has gone.
            TimeoutError: No answer within ``seconds``.
            OSError: The agent could not do it; carries the errno.
        """
        if self._ended:
            raise BoxLostError("the box has gone")
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._channel.send({"do": what, "id": number, **values})
                answer: dict[str, Any] = await waiting
        finally:
            del self._waiting[number]
            if waiting.done() and not waiting.cancelled():
                waiting.exception()
        problem = answer.get("errno")
        if isinstance(problem, int) and problem:
            raise OSError(problem, os.strerror(problem))
        return answer

    async def listen(self, address: str, port: int) -> int:
        """Returns the descriptor of a socket that listens inside the box.

        Raises:
            BoxLostError: The box has gone, or its agent sent no descriptor.
            OSError: The port is taken, or the box has no such address.
        """
        await self.ask("listen", address=address, port=port)
        descriptor = self._channel.take_descriptor()
        if descriptor is None:
            raise BoxLostError("the box's agent sent no listening socket")
        return descriptor
