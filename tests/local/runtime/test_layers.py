"""Writable directories and the layers that are frozen from them."""

from __future__ import annotations

import asyncio
import os
import uuid
from pathlib import Path

import pytest

from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.errors import RuntimeFault
from sandbox.local.runtime.interface import BoxSpec

from .conftest import BoxMaker
from .driving import shell


async def freeze(runtime: BubblewrapRuntime, make_box: BoxMaker, layers: list[str], text: str) -> str:
    """Runs ``text`` in a box over ``layers`` and freezes what it has written on top of them."""
    box = await make_box(layers=tuple(layers))
    outcome = await shell(box, f"set -e\n{text}")
    assert outcome.exit_code == 0, outcome.stderr
    await box.stop()
    name = f"layer-{uuid.uuid4().hex[:8]}"
    assert await runtime.freeze(box.spec.box_id, name) > 0
    layers.append(name)
    return name


async def test_an_idle_box_writes_nothing(runtime: BubblewrapRuntime, make_box: BoxMaker) -> None:
    box = await make_box()
    await shell(box, "true")
    await box.stop()
    assert list((runtime._places.boxes / box.spec.box_id / "up").iterdir()) == []


async def test_layers_stack_with_deletions_and_replacements(
    runtime: BubblewrapRuntime, make_box: BoxMaker, layers: list[str]
) -> None:
    await freeze(
        runtime,
        make_box,
        layers,
        "mkdir -p /opt/tools/sub private; echo one >/opt/tools/a; echo one >/opt/tools/b; echo one >/opt/tools/sub/c;"
        "ln /opt/tools/a /opt/tools/hard; chmod 700 private; echo s >private/s",
    )
    await freeze(
        runtime,
        make_box,
        layers,
        "cd /opt/tools; rm b; rm -r sub; mkdir sub; echo two >sub/d; echo two >>a",
    )
    box = await make_box(layers=tuple(layers))
    outcome = await shell(box, "cd /opt/tools; ls -R; cat a sub/d; cat ~/private/s; stat -c %a ~/private")
    assert outcome.stdout == ".:\na\nhard\nsub\n\n./sub:\nd\none\ntwo\ntwo\ns\n700\n"
    assert outcome.stderr == ""
    lower = await make_box(layers=tuple(layers[:1]))
    assert (await shell(lower, "cat /opt/tools/a /opt/tools/b /opt/tools/sub/c")).stdout == "one\none\none\n"


async def test_layers_are_shared_and_never_change(
    runtime: BubblewrapRuntime, make_box: BoxMaker, layers: list[str]
) -> None:
    await freeze(runtime, make_box, layers, "mkdir shared; for n in $(seq 100); do echo $n >shared/$n; done")
    boxes = await asyncio.gather(*(make_box(layers=tuple(layers)) for _ in range(4)))
    await asyncio.gather(*(shell(box, "rm -r shared; echo mine >own") for box in boxes))
    fresh = await make_box(layers=tuple(layers))
    assert (await shell(fresh, "ls shared | wc -l; ls own 2>/dev/null")).stdout == "100\n"


async def test_moving_a_directory_of_a_layer(runtime: BubblewrapRuntime, make_box: BoxMaker, layers: list[str]) -> None:
    await freeze(runtime, make_box, layers, "mkdir -p old/in; echo x >old/in/f")
    box = await make_box(layers=tuple(layers))
    await box.files.move("old", "new")
    assert (await shell(box, "cat new/in/f; ls")).stdout == "x\nnew\n"


async def test_a_box_starts_again_over_its_files(make_box: BoxMaker) -> None:
    box = await make_box()
    await shell(box, "echo kept >file; echo lost >/tmp/file; sleep 1000 >/dev/null 2>&1 &")
    await box.stop()
    again = await make_box(box_id=box.spec.box_id)
    assert (await shell(again, "cat file; ls /tmp; ls /proc | grep -c '^[0-9]'")).stdout.split()[0] == "kept"
    assert (await again.usage()).processes == 0


async def test_one_live_box_for_a_directory(make_box: BoxMaker, runtime: BubblewrapRuntime) -> None:
    box = await make_box()
    with pytest.raises(RuntimeFault, match="in use"):
        await runtime.start(BoxSpec(box_id=box.spec.box_id))
    with pytest.raises(RuntimeFault, match="in use"):
        await runtime.freeze(box.spec.box_id, "frozen-alive")
    with pytest.raises(RuntimeFault, match="in use"):
        await runtime.remove_box(box.spec.box_id)
    assert await box.alive()


async def test_a_layer_in_use_stays(runtime: BubblewrapRuntime, make_box: BoxMaker, layers: list[str]) -> None:
    name = await freeze(runtime, make_box, layers, "echo x >file")
    box = await make_box(layers=(name,))
    with pytest.raises(RuntimeFault, match="in use"):
        await runtime.remove_layer(name)
    await box.stop()
    await runtime.remove_layer(name)
    assert name not in runtime.layers_on_disk()
    with pytest.raises(RuntimeFault, match="does not exist"):
        await runtime.start(BoxSpec(box_id="over-nothing", layers=(name,)))
    await runtime.remove_box("over-nothing")


async def test_a_layer_is_never_overwritten(runtime: BubblewrapRuntime, make_box: BoxMaker, layers: list[str]) -> None:
    name = await freeze(runtime, make_box, layers, "echo x >file")
    box = await make_box()
    await box.stop()
    with pytest.raises(RuntimeFault, match="exists already"):
        await runtime.freeze(box.spec.box_id, name)


async def test_too_many_layers_are_refused_not_cut(
    runtime: BubblewrapRuntime, make_box: BoxMaker, layers: list[str]
) -> None:
    """The kernel takes one page of options and bwrap cuts the rest without a word."""
    await freeze(runtime, make_box, layers, "echo x >file")
    with pytest.raises(RuntimeFault, match="fewer layers"):
        await runtime.start(BoxSpec(box_id="tower", layers=tuple(layers * 100)))
    await runtime.remove_box("tower")


@pytest.mark.parametrize("name", ["..", "a/b", "", "-x", "a" * 200, "a\0b", "a b"])
async def test_names_that_lead_elsewhere_are_refused(runtime: BubblewrapRuntime, name: str) -> None:
    with pytest.raises(RuntimeFault):
        await runtime.start(BoxSpec(box_id=name))
    with pytest.raises(RuntimeFault):
        await runtime.remove_layer(name)
    with pytest.raises(RuntimeFault):
        await runtime.start(BoxSpec(box_id="fine", layers=(name,)))
    await runtime.remove_box("fine")


async def test_removal_is_at_once_and_of_everything(runtime: BubblewrapRuntime, make_box: BoxMaker) -> None:
    box = await make_box()
    await shell(box, "mkdir -p a/b; touch a/b/c; chmod 0 a/b a; head -c 3000000 /dev/zero >zeros")
    await box.stop()
    await runtime.remove_box(box.spec.box_id)
    assert box.spec.box_id not in runtime.boxes_on_disk()
    await runtime._disks.close()
    assert list(runtime._places.trash.iterdir()) == []


async def test_who_owns_what(runtime: BubblewrapRuntime, make_box: BoxMaker) -> None:
    box = await make_box()
    await shell(box, "echo x >file; chmod 4755 file")
    places = runtime._places
    inside = places.boxes / box.spec.box_id / "up/home/sandbox/file"
    assert inside.stat().st_uid == runtime.enforcement.host_uid
    # The set-uid file that a box may leave is out of everybody's reach: the directory above is its owner's alone.
    for directory in (places.boxes, places.layers):
        found = directory.stat()
        assert (found.st_uid, found.st_mode & 0o777) == (runtime.enforcement.host_uid, 0o700)
    assert _mode(places.state) == 0o700
    assert places.state.stat().st_uid == os.getuid()


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
