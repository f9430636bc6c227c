"""File operations inside a box."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sandbox.local.runtime.box import BubblewrapBox
from sandbox.local.runtime.errors import BoxFileError, FileErrorKind
from sandbox.local.runtime.interface import MIB

from .conftest import BoxMaker
from .driving import chunks_of, shell


async def content(box: BubblewrapBox, path: str) -> bytes:
    return b"".join([chunk async for chunk in box.files.read(path)])


async def test_a_file_goes_in_and_comes_out(box: BubblewrapBox) -> None:
    data = bytes(range(256)) * 20_000
    assert await box.files.write("deep/er/file.bin", chunks_of(data[:100], data[100:])) == len(data)
    assert await content(box, "/home/sandbox/deep/er/file.bin") == data
    outcome = await shell(box, "stat -c '%a %U %s' deep deep/er/file.bin; wc -c <deep/er/file.bin")
    assert outcome.stdout.split() == ["755", "sandbox", "4096", "644", "sandbox", str(len(data)), str(len(data))]


async def test_writing_replaces(box: BubblewrapBox) -> None:
    await box.files.write("file", chunks_of(b"a long first version"))
    await box.files.write("file", chunks_of(b"short"))
    assert await content(box, "file") == b"short"


async def test_an_empty_file(box: BubblewrapBox) -> None:
    assert await box.files.write("empty", chunks_of()) == 0
    assert await content(box, "empty") == b""


async def test_chunks_are_bounded(box: BubblewrapBox) -> None:
    await shell(box, "head -c 1000000 /dev/zero >zeros")
    sizes = [len(chunk) async for chunk in box.files.read("zeros")]
    assert sum(sizes) == 1_000_000
    assert max(sizes) <= 65536


async def test_a_reader_may_leave_early(box: BubblewrapBox) -> None:
    await shell(box, "head -c 50000000 /dev/zero >zeros")
    stream = box.files.read("zeros")
    assert await anext(aiter(stream))
    await stream.aclose()  # type: ignore[attr-defined]
    assert (await box.files.stat("zeros")).size == 50_000_000


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/no/such", "not_found"),
        ("", "invalid_path"),
        ("with\0nul", "invalid_path"),
        ("/etc/passwd/below", "not_a_directory"),
        ("/home/sandbox", "is_directory"),
        ("/home/sandbox/fifo", "invalid_path"),
        ("/home/sandbox/closed", "access_denied"),
        ("/" + "x" * 300, "invalid_path"),
        ("/home/sandbox/loop", "invalid_path"),
    ],
)
async def test_what_cannot_be_read(box: BubblewrapBox, path: str, kind: FileErrorKind) -> None:
    await shell(box, "mkfifo fifo; echo x >closed; chmod 0 closed; ln -s loop loop")
    with pytest.raises(BoxFileError) as caught:
        await content(box, path)
    assert caught.value.kind == kind
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/usr/bin/new", "access_denied"),
        ("/home/sandbox", "is_directory"),
        ("/home/sandbox/new/", "is_directory"),
        ("/etc/passwd/below", "not_a_directory"),
        ("/home/sandbox/fifo", "failed"),
        ("", "invalid_path"),
    ],
)
async def test_what_cannot_be_written_is_told_after_the_last_chunk(
    box: BubblewrapBox, path: str, kind: FileErrorKind
) -> None:
    await shell(box, "mkfifo fifo")
    taken = []

    async def chunks() -> AsyncIterator[bytes]:
        for number in range(30):
            taken.append(number)
            yield b"x" * 100_000

    with pytest.raises(BoxFileError) as caught:
        await box.files.write(path, chunks())
    assert caught.value.kind == kind
    assert len(taken) == 30


async def test_more_than_the_disk_holds(make_box: BoxMaker) -> None:
    box = await make_box(disk=16 * MIB)
    with pytest.raises(BoxFileError) as caught:
        await box.files.write("large", chunks_of(*[b"x" * MIB] * 20))
    assert caught.value.kind == "no_space"


async def test_more_than_tmp_holds(make_box: BoxMaker) -> None:
    box = await make_box(memory=256 * MIB)
    with pytest.raises(BoxFileError) as caught:
        await box.files.write("/tmp/large", chunks_of(*[b"x" * MIB] * 100))
    assert caught.value.kind == "no_space"


async def test_descriptions(box: BubblewrapBox) -> None:
    await shell(box, "mkdir d; echo hello >d/file; chmod 640 d/file; ln -s file d/link; ln -s nowhere d/dangling")
    found = await box.files.stat("d/file")
    assert (found.name, found.path, found.is_dir, found.size) == ("file", "/home/sandbox/d/file", False, 6)
    assert (found.mode & 0o777, found.uid, found.gid) == (0o640, 1000, 1000)
    assert (await box.files.stat("d")).is_dir
    assert (await box.files.stat("d/link")).size == 6
    assert (await box.files.stat("/")).is_dir
    assert [entry.name for entry in await box.files.list("d")] == ["file", "link"]


async def test_listing_by_depth(box: BubblewrapBox) -> None:
    await shell(box, "mkdir -p t/a/b/c; touch t/f t/a/f t/a/b/f")
    for depth, names in ((1, ["a", "f"]), (2, ["a", "f", "b", "f"]), (9, ["a", "f", "b", "f", "c", "f"])):
        assert [entry.name for entry in await box.files.list("t", depth=depth)] == names
    with pytest.raises(BoxFileError) as caught:
        await box.files.list("t/f")
    assert caught.value.kind == "not_a_directory"


async def test_a_large_listing(box: BubblewrapBox) -> None:
    await shell(box, "mkdir many; cd many; seq 20000 | xargs touch")
    assert len(await box.files.list("many")) == 20_000


async def test_names_that_are_not_utf8(box: BubblewrapBox) -> None:
    await shell(box, "mkdir odd; touch odd/$(printf 'a\\377b') 'odd/ä'")
    assert {entry.name for entry in await box.files.list("odd")} == {"a�b", "ä"}


async def test_directories(box: BubblewrapBox) -> None:
    await box.files.make_directory("x/y", mode=0o700)
    assert (await box.files.stat("x/y")).mode & 0o777 == 0o700
    await box.files.make_directory("x/y")
    await shell(box, "touch x/file")
    with pytest.raises(BoxFileError) as caught:
        await box.files.make_directory("x/file")
    assert caught.value.kind == "exists"


async def test_deletion(box: BubblewrapBox) -> None:
    await shell(box, "mkdir -p d/e; touch d/f d/e/g; ln -s /usr/bin link; touch file")
    await box.files.delete("file")
    await box.files.delete("link", recursive=True)
    with pytest.raises(BoxFileError) as caught:
        await box.files.delete("d")
    assert caught.value.kind == "is_directory"
    await box.files.delete("d", recursive=True)
    with pytest.raises(BoxFileError) as missing:
        await box.files.delete("d")
    assert missing.value.kind == "not_found"
    with pytest.raises(BoxFileError) as everything:
        await box.files.delete("/", recursive=True)
    assert everything.value.kind == "invalid_path"
    assert (await shell(box, "ls -A")).stdout == ""


async def test_deletion_of_hostile_trees(box: BubblewrapBox) -> None:
    script = (
        "import os\nos.mkdir('deep'); os.chdir('deep')\n"
        "for _ in range(3000): os.mkdir('dddddddddd'); os.chdir('dddddddddd')\n"
    )
    await shell(box, f'python3 -c "{script}"; mkdir -p shut/in; touch shut/in/f; chmod 0 shut/in shut')
    await box.files.delete("deep", recursive=True)
    await box.files.delete("shut", recursive=True)
    assert (await shell(box, "ls -A")).stdout == ""


async def test_moving(box: BubblewrapBox) -> None:
    await shell(box, "mkdir a b; echo 1 >a/f; echo 2 >g")
    await box.files.move("a", "b/c")
    assert await content(box, "b/c/f") == b"1\n"
    with pytest.raises(BoxFileError) as taken:
        await box.files.move("g", "b")
    assert taken.value.kind == "exists"
    with pytest.raises(BoxFileError) as missing:
        await box.files.move("nothing", "else")
    assert missing.value.kind == "not_found"
    # Between mounts, and out of a layer, a rename is a copy.
    await box.files.move("b/c", "/tmp/c")
    assert await content(box, "/tmp/c/f") == b"1\n"


async def test_searching(box: BubblewrapBox) -> None:
    await shell(
        box, "mkdir -p s/t; printf 'one\\ntwo needle\\n' >s/a.txt; printf 'needle\\0' >s/bin; echo 'x.needle' >s/t/b.py"
    )
    assert list(await box.files.find("s", "needle")) == [
        ("/home/sandbox/s/a.txt", 2, "two needle"),
        ("/home/sandbox/s/t/b.py", 1, "x.needle"),
    ]
    assert list(await box.files.find("s/a.txt", "two")) == [("/home/sandbox/s/a.txt", 2, "two needle")]
    assert list(await box.files.search("s", "*.py")) == ["/home/sandbox/s/t/b.py"]
    assert list(await box.files.search("s", "[at]")) == ["/home/sandbox/s/t"]
    with pytest.raises(BoxFileError):
        await box.files.find("nowhere", "x")


async def test_replacing(box: BubblewrapBox) -> None:
    await shell(box, "printf 'a.b a.b axb' >r; chmod 600 r")
    await box.files.replace("r", "a.b", "c")
    assert await content(box, "r") == b"c c axb"
    assert (await box.files.stat("r")).mode & 0o777 == 0o600


async def test_permissions(box: BubblewrapBox) -> None:
    await shell(box, "touch p")
    await box.files.set_permissions("p", mode=0o751, owner="sandbox", group="1000")
    assert (await box.files.stat("p")).mode & 0o7777 == 0o751
    with pytest.raises(BoxFileError) as caught:
        await box.files.set_permissions("p", owner="nobody")
    assert caught.value.kind == "access_denied"
    with pytest.raises(BoxFileError):
        await box.files.set_permissions("p", owner="no-such-user")


async def test_operations_leave_no_processes(box: BubblewrapBox) -> None:
    for _ in range(20):
        await box.files.stat(".")
    assert (await box.usage()).processes == 0
