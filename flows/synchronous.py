"""Twins of the async functions for notebooks and scripts: each call has a thread with an event loop of its own.

So they work in a running loop too, as Jupyter has one; there they block it, as any sync call does. Ctrl-C cancels the
work, waits for its clean-up and is raised then.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Final, ParamSpec, TypeVar

from flows.api import validate
from flows.runs import AnyRun
from flows.submission import SubmittedRun, submit
from flows.translation_api import validate_translation
from flows.watching import watch
from sandbox.events import Event
from sandbox.models import ValidationResult
from sandbox.translation import TranslationResult

P = ParamSpec("P")
T = TypeVar("T")

WAITING_EVENTS: Final = 1_000


def run_apart(work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **options: P.kwargs) -> T:
    """Runs an async function to its end in a thread of its own.

    Args:
        work: The async function.
        args: Its arguments.
        options: Its keyword arguments.
    """
    outcome: list[T] = []
    fault: list[BaseException] = []
    started = threading.Event()
    stop: list[Callable[[], object]] = []

    async def main() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        if task is not None:
            stop.append(lambda: loop.call_soon_threadsafe(task.cancel))
        started.set()
        return await work(*args, **options)

    def body() -> None:
        try:
            with asyncio.Runner() as runner:
                outcome.append(runner.run(main()))
        except BaseException as error:
            fault.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(body,), name="uom-sandbox call")
    thread.start()
    try:
        thread.join()
    except BaseException:
        started.wait()
        for cancel in stop:
            cancel()
        thread.join()
        raise
    if fault:
        raise fault[0]
    return outcome[0]


def validate_sync(*args: Any, **options: Any) -> ValidationResult:
    """Does what ``flows.validate`` does, with the same arguments, and returns the verdict."""
    return run_apart(validate, *args, **options)


def validate_translation_sync(*args: Any, **options: Any) -> TranslationResult:
    """Does what ``flows.validate_translation`` does, with the same arguments."""
    return run_apart(validate_translation, *args, **options)


def submit_sync(*args: Any, **options: Any) -> SubmittedRun:
    """Does what ``flows.submit`` does, with the same arguments; ``result_sync`` waits for the verdict."""
    return run_apart(submit, *args, **options)


def result_sync(run: SubmittedRun, *, timeout: float | None = None) -> ValidationResult:
    """Does what ``run.result`` does."""
    return run_apart(run.result, timeout=timeout)


def watch_sync(run: AnyRun, *, from_seq: int = 1) -> Iterator[Event]:
    """Does what ``flows.watch`` does, as a plain iterator; leaving it early ends the watching."""
    events: queue.Queue[Event | BaseException | None] = queue.Queue(WAITING_EVENTS)
    left = threading.Event()

    async def pump(source: AsyncIterator[Event]) -> None:
        async for event in source:
            while not left.is_set():
                try:
                    events.put_nowait(event)
                    break
                except queue.Full:
                    await asyncio.sleep(0.01)

    async def until_left() -> None:
        pumping = asyncio.create_task(pump(watch(run, from_seq=from_seq)))
        try:
            while not pumping.done() and not left.is_set():
                await asyncio.wait({pumping}, timeout=0.1)
        finally:
            if not pumping.done():
                pumping.cancel()
            await asyncio.gather(pumping, return_exceptions=True)
        if not left.is_set():
            pumping.result()

    def body() -> None:
        end: BaseException | None = None
        try:
            asyncio.run(until_left())
        except BaseException as error:
            end = error
        while not left.is_set():
            try:
                events.put(end, timeout=0.1)
            except queue.Full:
                continue
            return

    thread = threading.Thread(target=contextvars.copy_context().run, args=(body,), name="uom-sandbox watch")
    thread.start()
    try:
        while (event := events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
    finally:
        left.set()
        thread.join()
