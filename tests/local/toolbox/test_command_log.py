"""The log of a command: exact, bounded in memory, for readers of any speed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.local.toolbox.command_log import CommandLog
from sandbox.local.toolbox.framing import Run, Stream

MIB = 1024 * 1024


def joined(runs: list[Run]) -> dict[Stream, bytes]:
    return {wanted: b"".join(data for stream, data in runs if stream is wanted) for wanted in Stream}


async def read_all(log: CommandLog) -> list[Run]:
    reader = log.reader()
    runs: list[Run] = []
    try:
        while await reader.wait():
            runs += await reader.read()
    finally:
        await reader.close()
    return runs


def entries(directory: Path) -> list[Path]:
    return list(directory.iterdir())


def merged(runs: list[Run]) -> list[Run]:
    result: list[Run] = []
    for stream, data in runs:
        if result and result[-1][0] is stream:
            result[-1] = (stream, result[-1][1] + data)
        else:
            result.append((stream, data))
    return result


@given(st.lists(st.tuples(st.sampled_from(list(Stream)), st.integers(1, 200_000)), max_size=25))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_readers_before_during_and_after_see_the_same(tmp_path: Path, sizes: list[tuple[Stream, int]]) -> None:
    written = [(stream, bytes([number % 251]) * size) for number, (stream, size) in enumerate(sizes)]

    async def scenario() -> None:
        log = CommandLog(tmp_path / "log", capacity=100 * MIB)
        early = asyncio.create_task(read_all(log))
        late = None
        for number, (stream, data) in enumerate(written):
            assert await log.append(stream, data)
            if number == len(written) // 2:
                late = asyncio.create_task(read_all(log))
        await log.finish()
        expected = merged(written)
        assert merged(await early) == expected
        assert late is None or merged(await late) == expected
        assert merged(await read_all(log)) == expected
        await log.discard()
        assert not (tmp_path / "log").exists()

    asyncio.run(scenario())


@pytest.fixture
async def make_log(tmp_path: Path) -> AsyncIterator[Callable[..., CommandLog]]:
    made: list[CommandLog] = []

    def make(*, capacity: int = 1000 * MIB) -> CommandLog:
        made.append(CommandLog(tmp_path / f"log{len(made)}", capacity=capacity))
        return made[-1]

    yield make
    for log in made:
        await log.discard()
    assert entries(tmp_path) == []


async def test_memory_is_bounded_however_slow_the_reader(make_log: Callable[..., CommandLog]) -> None:
    log = make_log()
    slow = log.reader()
    for _ in range(400):
        await log.append(Stream.STDOUT, b"x" * 65536)
        assert len(log._tail) <= MIB
    await log.finish()
    assert len(log._tail) == 0
    size = 0
    while await slow.wait():
        size += sum(len(data) for _, data in await slow.read())
    await slow.close()
    assert size == 400 * 65536


async def test_a_small_log_never_touches_the_disk(make_log: Callable[..., CommandLog], tmp_path: Path) -> None:
    log = make_log()
    await log.append(Stream.STDOUT, b"hello")
    await log.append(Stream.STDERR, b"error")
    await log.finish()
    assert entries(tmp_path) == []
    assert await read_all(log) == [(Stream.STDOUT, b"hello"), (Stream.STDERR, b"error")]


async def test_an_earlier_end_cuts_what_came_later(make_log: Callable[..., CommandLog]) -> None:
    log = make_log()
    await log.append(Stream.STDOUT, b"before")
    end = log.size
    await log.append(Stream.STDOUT, b"after")
    reader = log.reader()
    assert await reader.read(end=end) == [(Stream.STDOUT, b"before")]
    assert await reader.read(end=end) == []
    assert await reader.read() == [(Stream.STDOUT, b"after")]
    await reader.close()


async def test_the_capacity_refuses_and_stays_refused(make_log: Callable[..., CommandLog]) -> None:
    log = make_log(capacity=1000)
    assert await log.append(Stream.STDOUT, b"x" * 900)
    assert not await log.append(Stream.STDERR, b"y" * 900)
    assert not await log.append(Stream.STDERR, b"z")
    assert log.overflowed
    log.remark("full")
    await log.finish()
    assert joined(await read_all(log)) == {Stream.STDOUT: b"x" * 900, Stream.STDERR: b"full"}


async def test_nothing_is_added_to_a_complete_log(make_log: Callable[..., CommandLog]) -> None:
    log = make_log()
    await log.finish()
    assert not await log.append(Stream.STDOUT, b"late")
    log.remark("late")
    assert await read_all(log) == []


async def test_a_discarded_log_serves_the_readers_it_has(make_log: Callable[..., CommandLog], tmp_path: Path) -> None:
    log = make_log()
    reader = log.reader()
    await log.append(Stream.STDOUT, b"x" * (2 * MIB))
    await log.discard()
    size = 0
    while await reader.wait():
        size += sum(len(data) for _, data in await reader.read())
    assert size == 2 * MIB
    assert entries(tmp_path)
    await reader.close()
    assert entries(tmp_path) == []


async def test_a_disk_that_fails_stops_the_log_and_keeps_what_memory_holds(tmp_path: Path) -> None:
    log = CommandLog(tmp_path / "no such directory" / "log", capacity=1000 * MIB)
    assert not await log.append(Stream.STDOUT, b"x" * (2 * MIB))
    assert not await log.append(Stream.STDOUT, b"y")
    await log.finish()
    found = joined(await read_all(log))
    assert found[Stream.STDOUT] == b"x" * (2 * MIB)
    assert b"could not store" in found[Stream.STDERR]
    await log.discard()


async def test_a_cancelled_reader_leaves_the_log_whole(make_log: Callable[..., CommandLog]) -> None:
    log = make_log()
    await log.append(Stream.STDOUT, b"x" * (8 * MIB))
    await log.finish()

    async def cut(steps: int) -> None:
        task: asyncio.Task[list[Run]] = asyncio.create_task(read_all(log))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    cuts: list[Coroutine[Any, Any, None]] = [cut(steps) for steps in range(30)]
    await asyncio.gather(*cuts)
    assert joined(await read_all(log))[Stream.STDOUT] == b"x" * (8 * MIB)
