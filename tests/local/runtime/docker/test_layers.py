"""The checks of ``tests.local.runtime.test_layers`` against images, and what a build as root leaves to its user."""

from __future__ import annotations

import pytest

from sandbox.local.runtime.docker import DockerRuntime
from sandbox.local.runtime.errors import RuntimeFault
from sandbox.local.runtime.interface import BoxSpec
from tests.local.runtime.test_layers import *  # noqa: F403
from tests.local.runtime.test_layers import freeze

from ..driving import chunks_of, run, shell
from .conftest import BoxMaker

# Writes to /opt, which here only builds may.
del test_layers_stack_with_deletions_and_replacements  # noqa: F821
# Of directories and mount options, which are bubblewrap's.
del test_an_idle_box_writes_nothing  # noqa: F821
del test_too_many_layers_are_refused_not_cut  # noqa: F821
del test_removal_is_at_once_and_of_everything  # noqa: F821
del test_who_owns_what  # noqa: F821


async def test_layers_stack(runtime: DockerRuntime, make_box: BoxMaker, layers: list[str]) -> None:
    await freeze(
        runtime,  # type: ignore[arg-type]
        make_box,  # type: ignore[arg-type]
        layers,
        "mkdir -p tools/sub private; echo one >tools/a; echo one >tools/b; echo one >tools/sub/c;"
        "ln tools/a tools/hard; chmod 700 private; echo s >private/s",
    )
    await freeze(
        runtime,  # type: ignore[arg-type]
        make_box,  # type: ignore[arg-type]
        layers,
        "cd tools; rm b; rm -r sub; mkdir sub; echo two >sub/d; echo two >>a",
    )
    box = await make_box(layers=tuple(layers))
    outcome = await shell(box, "cd tools; ls -R; cat a sub/d; cat ~/private/s; stat -c %a ~/private")
    assert outcome.stdout == ".:\na\nhard\nsub\n\n./sub:\nd\none\ntwo\ntwo\ns\n700\n"
    assert outcome.stderr == ""
    lower = await make_box(layers=tuple(layers[:1]))
    assert (await shell(lower, "cat tools/a tools/b tools/sub/c")).stdout == "one\none\none\n"


async def test_layers_that_do_not_stand_on_each_other_are_refused(
    runtime: DockerRuntime, make_box: BoxMaker, layers: list[str]
) -> None:
    one = await freeze(runtime, make_box, [], "echo 1 >one")  # type: ignore[arg-type]
    two = await freeze(runtime, make_box, [], "echo 2 >two")  # type: ignore[arg-type]
    layers += [one, two]
    with pytest.raises(RuntimeFault, match="stands on the layers none and not on"):
        await runtime.start(BoxSpec(box_id="tower", layers=(one, two)))


async def test_a_build_is_root_s_and_what_it_leaves_is_the_user_s(
    runtime: DockerRuntime, make_box: BoxMaker, layers: list[str]
) -> None:
    build = await make_box(build=True)
    text = (
        "set -e; id -u; mkdir -p /opt/tools/deep /app cache; echo of root >/usr/bin/tool; chmod 4755 /usr/bin/env;"
        "echo x >/opt/tools/deep/file; ln -s /etc/passwd /opt/tools/link; echo x >cache/file; chmod 600 cache/file;"
        "chown 65534 /opt/tools/deep/file; echo nobody >/tmp/not-kept; echo y >>/etc/group"
    )
    outcome = await shell(build, text)
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (0, "0\n", "")
    await build.files.write("/opt/by-file", chunks_of(b"x"))
    await build.stop()
    layers.append("of-a-build")
    assert await runtime.freeze(build.spec.box_id, "of-a-build") > 0
    assert build.spec.box_id not in runtime.boxes_on_disk()

    box = await make_box(layers=("of-a-build",), workdir="/app")
    outcome = await shell(
        box,
        "id -u; for f in /opt /opt/tools /opt/tools/link /opt/by-file /app ~/cache/file /opt/tools/deep/file "
        "/usr/bin/tool /etc/group /etc/passwd; do stat -c '%u %n' $f; done; ls /tmp; echo new >>/opt/by-file; pwd",
    )
    assert outcome.stdout.splitlines() == [
        "1000",
        # Of the image, but changed by the build.
        "1000 /opt",
        "1000 /opt/tools",
        "1000 /opt/tools/link",
        "1000 /opt/by-file",
        "1000 /app",
        "1000 /home/sandbox/cache/file",
        "65534 /opt/tools/deep/file",
        "0 /usr/bin/tool",
        "0 /etc/group",
        "0 /etc/passwd",
        "/app",
    ]
    # A set-uid program of the image gives nobody anything.
    assert (await run(box, "/usr/bin/env", "python3", "-c", "import os; print(os.geteuid())")).stdout == "1000\n"


async def test_a_build_of_an_unsound_tree_fails_in_words(
    runtime: DockerRuntime, make_box: BoxMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = await make_box(build=True)
    await shell(build, "mkdir -p /opt/tools")
    await build.stop()
    monkeypatch.setattr("sandbox.local.runtime.docker_handover._PROGRAM", "raise OSError(5, 'broken disk')")
    with pytest.raises(RuntimeFault, match="broken disk"):
        await runtime.freeze(build.spec.box_id, "never-made")
    assert "never-made" not in runtime.layers_on_disk()
