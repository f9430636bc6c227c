"""What a hostile program tries in a container: the attempts of ``tests.local.runtime.test_escapes``."""

from __future__ import annotations

import json
from pathlib import Path

from sandbox.local.runtime.docker_box import DockerBox
from tests.local.runtime.test_escapes import (  # noqa: F401 - collected here, run against containers
    ATTEMPTS,
    NO_DEVICES,
    test_another_box_is_out_of_reach,
    test_links_lead_to_the_box_not_to_the_host,
    test_services_of_the_host_are_out_of_reach,
)

from ..driving import chunks_of, host_processes, run, shell, uids_of
from .conftest import BoxMaker

REFUSED = {"EACCES", "EPERM", "ENOENT", "EROFS", "ENXIO", "ENOSYS", "EAFNOSUPPORT", "EINVAL", "ENOTDIR", "EIO"}


async def test_attempts(box: DockerBox, tmp_path: Path) -> None:
    secret = tmp_path / "platform.key"
    secret.write_text("key")
    await box.files.write("attempts.py", chunks_of(ATTEMPTS.encode()))
    outcome = await run(box, "python3", "attempts.py", str(secret))
    assert outcome.exit_code == 0, outcome.stderr
    results = json.loads(outcome.stdout)
    told = {
        "kill the agent": {"done"},
        "setuid program": {"1000"},
        "capabilities": {" ".join(["0" * 16] * 5)},
        "no new privileges": {"1"},
        "list /root": {"empty"},
        "list /home": {"['sandbox']"},
        # Of the container: hidden files are empty and swallow writes.
        "read /proc/kcore": {"done"},
        "read /proc/kmsg": {"done"},
        "write /proc/sysrq-trigger": {"done"},
        "raise a limit": {"ValueError"},
    }
    devices = results.pop("devices")
    processes = results.pop("processes")
    # The kernel's tree for devices, read-only; what tells of the host's firmware and power is hidden.
    assert "kernel" in results.pop("list /sys")
    for name, result in results.items():
        assert result in told.get(name, set()) | REFUSED, (name, result)
    assert not NO_DEVICES & set(json.loads(devices.replace("'", '"')))
    assert processes == "[1, 3]"
    assert await box.alive()


async def test_names(box: DockerBox) -> None:
    outcome = await run(box, "python3", "-c", "import socket; print(socket.gethostbyname(socket.gethostname()))")
    assert outcome.stdout == "127.0.0.1\n"
    addresses = await shell(box, "grep ^nameserver /etc/resolv.conf")
    assert addresses.stdout == "nameserver 127.0.0.1\n"


async def test_hidden_files_of_proc_are_empty(box: DockerBox) -> None:
    outcome = await shell(box, "cat /proc/kcore /proc/kmsg /proc/keys /proc/kallsyms /proc/cmdline | wc -c")
    assert outcome.stdout.strip() == "0"


async def test_the_socket_of_the_agent_is_gone_and_cannot_be_put_back(box: DockerBox) -> None:
    outcome = await shell(
        box, "ls -A /run/.control; touch /run/.control/agent; touch /run/.agent/x; ls -ld /run/.agent"
    )
    assert outcome.stdout.splitlines()[0].startswith("drwx")
    assert outcome.stderr.count("Read-only file system") == 2


async def test_the_agent_is_pid_1_and_two_filters_hold_what_it_starts(box: DockerBox) -> None:
    outcome = await shell(box, "cat /proc/1/cmdline; echo; grep -E '^(Seccomp|CapBnd|NoNewPrivs)' /proc/self/status")
    command, *lines = outcome.stdout.splitlines()
    assert command.startswith("/run/.agent/so/ld-")
    values = dict(line.split() for line in lines)
    # The engine's filter and ours.
    assert values == {"CapBnd:": "0" * 16, "NoNewPrivs:": "1", "Seccomp:": "2", "Seccomp_filters:": "2"}


async def test_containers_do_not_run_as_root_on_the_host(box: DockerBox) -> None:
    process = await box.run(["sleep", "918273550"])
    (pid,) = host_processes("918273550")
    assert 0 not in uids_of(pid)
    await process.kill()
    process.close_pipes()


async def test_a_build_has_few_capabilities_and_cannot_mount(make_box: BoxMaker) -> None:
    build = await make_box(build=True)
    outcome = await shell(
        build,
        "grep CapEff /proc/self/status; mount -t tmpfs none /mnt; mknod /disk b 254 0; cat /proc/sysrq-trigger;"
        "echo 1 >/proc/sys/vm/overcommit_memory; chown 65534 /home && chmod 700 /home && rm -rf /home && echo fine",
    )
    assert outcome.stdout.splitlines()[-1] == "fine"
    granted = int(outcome.stdout.split()[1], 16)
    # CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SYS_CHROOT SETFCAP
    assert granted == sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 18, 31))
    assert await build.alive()
