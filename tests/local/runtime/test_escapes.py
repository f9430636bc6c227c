"""What a hostile program tries, and that it gets nowhere: run as a command of a box, by the box's own Python."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from sandbox.local.runtime.box import BubblewrapBox
from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.errors import BoxFileError, RuntimeUnavailableError

from .conftest import BoxMaker
from .driving import chunks_of, host_processes, names_in, run, shell, uids_of

ATTEMPTS = r"""
import ctypes, errno, json, os, socket, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
results = {}

def attempt(name):
    def decorate(function):
        try:
            value = function()
            results[name] = "done" if value is None else str(value)
        except OSError as error:
            results[name] = errno.errorcode.get(error.errno, str(error.errno))
        except Exception as error:
            results[name] = type(error).__name__
    return decorate

def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result

def reads(path):
    @attempt("read " + path)
    def _():
        with open(path, "rb") as file:
            file.read(1)

def writes(path):
    @attempt("write " + path)
    def _():
        descriptor = os.open(path, os.O_WRONLY)
        os.close(descriptor)

def lists(path):
    @attempt("list " + path)
    def _():
        return os.listdir(path) or "empty"

for path in sys.argv[1:]: reads(path)
for path in ("/etc/shadow", "/etc/ssl/private", "/run/docker.sock", "/var/run/docker.sock", "/proc/kcore",
             "/proc/kmsg"): reads(path)
for path in ("/proc/1/environ", "/proc/1/mem", "/proc/1/maps"): reads(path)
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sys/net/ipv4/ip_forward",
             "/proc/sysrq-trigger", "/proc/1/mem", "/usr/bin/env", "/run/.agent/boot.pyc", "/run/.agent/python",
             "/proc/1/oom_score_adj"): writes(path)
for path in ("/root", "/home", "/var/lib", "/sys", "/boot", "/proc/1/fd", "/proc/1/root", "/proc/1/cwd"): lists(path)

@attempt("ptrace the agent")
def _(): call(libc.ptrace(16, 1, 0, 0))

@attempt("take a descriptor of the agent")
def _():
    pidfd = os.pidfd_open(1)
    call(libc.syscall(438, pidfd, 3, 0))

@attempt("kill the agent")
def _():
    os.kill(1, 9); os.kill(1, 19); os.kill(1, 15)

@attempt("mount")
def _(): call(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))

@attempt("unmount")
def _(): call(libc.umount2(b"/proc", 2))

@attempt("pivot_root")
def _(): call(libc.syscall(155, b"/", b"/tmp"))

@attempt("chroot")
def _(): os.chroot("/tmp")

for name, flag in (("user", 0x10000000), ("mount", 0x20000), ("net", 0x40000000), ("pid", 0x20000000)):
    @attempt("unshare " + name)
    def _(): call(libc.unshare(flag))

@attempt("clone3")
def _(): call(libc.syscall(435, 0, 0))

@attempt("setuid 0")
def _(): os.setuid(0)

@attempt("setgroups")
def _(): os.setgroups([0])

@attempt("chown to another")
def _():
    open("/tmp/mine", "w").close(); os.chown("/tmp/mine", 65534, 65534)

@attempt("mknod block")
def _(): os.mknod("/home/sandbox/disk", 0o60666, os.makedev(254, 0))

@attempt("mknod whiteout")
def _(): os.mknod("/home/sandbox/whiteout", 0o20666, os.makedev(0, 0))

@attempt("setuid program")
def _():
    import shutil, subprocess
    shutil.copy("/usr/bin/id", "/home/sandbox/id"); os.chmod("/home/sandbox/id", 0o6755)
    return subprocess.run(["/home/sandbox/id", "-u"], capture_output=True, text=True).stdout.strip()

for name, family, kind, protocol in (("vsock", 40, 1, 0), ("packet", 17, 3, 0), ("raw", 2, 3, 1), ("alg", 38, 5, 0)):
    @attempt("socket " + name)
    def _(): socket.socket(family, kind, protocol)

@attempt("keyring")
def _(): call(libc.syscall(248, b"user", b"x", b"y", 1, -3))

for name, number in (("bpf", 321), ("userfaultfd", 323), ("io_uring", 425), ("perf", 298), ("kexec", 246),
                     ("init_module", 175), ("open_by_handle", 304), ("process_vm_readv", 310)):
    @attempt("call " + name)
    def _(): call(libc.syscall(number, 0, 0, 0, 0, 0, 0))

@attempt("realtime")
def _(): os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))

@attempt("nicer")
def _(): os.nice(-5)

@attempt("raise a limit")
def _():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (100000, 100000))

@attempt("hostname")
def _(): call(libc.sethostname(b"evil", 4))

@attempt("controlling terminal")
def _(): os.open("/dev/tty", os.O_RDWR)

@attempt("capabilities")
def _():
    with open("/proc/self/status") as file:
        return " ".join(line.split()[1] for line in file if line.startswith("Cap"))

@attempt("no new privileges")
def _():
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith("NoNewPrivs"))

@attempt("processes")
def _():
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pids[0], len(pids)]

@attempt("devices")
def _(): return sorted(os.listdir("/dev"))

print(json.dumps(results))
"""
NO_DEVICES = {"sda", "vda", "mem", "kmsg", "kvm", "fuse", "net", "loop0", "port", "vsock"}


async def _attempt(box: BubblewrapBox, *paths: str) -> dict[str, str]:
    await box.files.write("attempts.py", chunks_of(ATTEMPTS.encode()))
    outcome = await run(box, "python3", "attempts.py", *paths)
    assert outcome.exit_code == 0, outcome.stderr
    results = json.loads(outcome.stdout)
    assert isinstance(results, dict)
    return results


async def test_attempts(box: BubblewrapBox, runtime: BubblewrapRuntime, tmp_path: Path) -> None:
    secret = tmp_path / "platform.key"
    secret.write_text("key")
    results = await _attempt(box, str(secret), str(runtime._places.root / "state/server.lock"))
    refused = {"EACCES", "EPERM", "ENOENT", "EROFS", "ENXIO", "ENOSYS", "EAFNOSUPPORT", "EINVAL", "ENOTDIR", "EIO"}
    # A read of what is hidden finds an empty file; what is told below is checked for its content.
    told = {
        "kill the agent": "done",
        "setuid program": "1000",
        "capabilities": " ".join(["0" * 16] * 5),
        "no new privileges": "1",
        "list /root": "empty",
        "list /home": "['sandbox']",
        "list /var/lib": "ENOENT",
        "read /proc/kcore": "done",
        "read /proc/kmsg": "done",
        "write /proc/sysrq-trigger": "done",
        "raise a limit": "ValueError",
    }
    devices = results.pop("devices")
    processes = results.pop("processes")
    for name, result in results.items():
        if name in told:
            assert result in {told[name], "EACCES", "ENOENT"}, (name, result)
        else:
            assert result in refused, (name, result)
    assert not NO_DEVICES & set(json.loads(devices.replace("'", '"')))
    # The agent, the supervisor and the program: nobody else is to be seen.
    assert processes == "[1, 3]"
    assert await box.alive()


async def test_hidden_files_of_proc_are_empty_and_swallow_writes(box: BubblewrapBox) -> None:
    outcome = await shell(box, "cat /proc/kcore /proc/kmsg /proc/keys /proc/kallsyms /proc/cmdline | wc -c")
    assert outcome.stdout.strip() == "0"


async def test_the_host_file_system_does_not_show(box: BubblewrapBox) -> None:
    outcome = await shell(box, "ls -A / /root /home /srv /mnt /opt /run /var")
    assert outcome.exit_code == 0
    listing = outcome.stdout.split("\n\n")
    expected = {
        "/": {"bin", "dev", "etc", "home", "lib", "lib64", "mnt", "opt", "proc", "root", "run", "sandbox", "sbin"}
        | {"srv", "tmp", "usr", "var", "lib32", "libx32"},
        "/home": {"sandbox"},
        "/run": {".agent"},
        "/var": {"tmp", "log"},
    }
    for block in listing:
        place, _, names = block.strip().partition(":")
        assert set(names.split()) <= expected.get(place, set()), place


async def test_files_of_the_host_that_only_their_owner_may_read(box: BubblewrapBox) -> None:
    """Below /usr, the one host directory that is bound; root's private files there stay private."""
    outcome = await shell(box, "find /usr -type f ! -perm -004 -readable 2>/dev/null | head -5")
    assert outcome.stdout == ""


async def test_another_box_is_out_of_reach(make_box: BoxMaker) -> None:
    one = await make_box()
    await one.files.write("/tmp/secret", chunks_of(b"secret of one"))
    await one.files.write("/home/sandbox/secret", chunks_of(b"secret of one"))
    other = await make_box()
    outcome = await shell(other, "cat /tmp/secret /home/sandbox/secret; grep -rs 'secret of one' /home /tmp /sandbox")
    assert outcome.stdout == ""


async def test_services_of_the_host_are_out_of_reach(box: BubblewrapBox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0uom-test-{os.getpid()}")
        abstract.listen()
        script = f"""
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", {tcp.getsockname()[1]})),
                        (socket.AF_UNIX, "\\0uom-test-{os.getpid()}"),
                        (socket.AF_INET, ("192.0.2.1", 80)), (socket.AF_INET, ("169.254.169.254", 80))):
    try:
        socket.socket(family).connect(address)
        print("connected")
    except OSError as error:
        print(error.errno)
"""
        outcome = await run(box, "python3", "-c", script)
    assert outcome.stdout.split() == ["111", "111", "101", "101"]


async def test_links_lead_to_the_box_not_to_the_host(box: BubblewrapBox, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of the host")
    await shell(box, f"ln -s / root; mkdir -p {tmp_path}; ln -s {tmp_path} there; ln -s /proc/1/root agent")
    assert [chunk async for chunk in box.files.read("root/etc/hostname")] == [b"sandbox\n"]
    await box.files.write("there/made", chunks_of(b"in the box"))
    with pytest.raises(BoxFileError):
        await anext(aiter(box.files.read("there/file")))
    with pytest.raises(BoxFileError):
        await box.files.list("agent/")
    assert names_in(tmp_path) == ["file"]


async def test_nothing_of_the_server_shows_in_the_agent(box: BubblewrapBox) -> None:
    outcome = await shell(
        box, "tr '\\0' ' ' </proc/1/cmdline; cat /proc/1/environ /proc/self/mountinfo | grep -c SECRET"
    )
    assert outcome.stdout.startswith("/run/.agent/so/ld-")
    assert outcome.stdout.endswith("\n0\n") or outcome.stdout.endswith(" 0\n")


async def test_a_box_of_root_is_never_started(tmp_path: Path) -> None:
    runtime = BubblewrapRuntime(data_directory=tmp_path, host_uid=0)
    with pytest.raises(RuntimeUnavailableError, match="host_uid"):
        await runtime.prepare()


async def test_boxes_do_not_run_as_root_on_the_host(box: BubblewrapBox, runtime: BubblewrapRuntime) -> None:
    process = await box.run(["sleep", "918273650"])
    (pid,) = host_processes("918273650")
    uids = uids_of(pid)
    assert uids == {runtime.enforcement.host_uid}
    assert 0 not in uids
    await process.kill()
    process.close_pipes()
