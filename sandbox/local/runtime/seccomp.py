"""The system call filter of a box: a classic BPF program, made here so that no library is needed.

Namespaces and the lack of capabilities already hold a box; the filter closes what they leave open (measured without it:
AF_VSOCK reaches the hypervisor, keyrings, io_uring and userfaultfd answer, a process can take the agent's descriptors).
"""

from __future__ import annotations

import errno
import platform
import struct

from .errors import RuntimeUnavailableError
from .syscalls import INSPECTED, numbers

_LOAD_WORD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06

ALLOW = 0x7FFF0000
KILL = 0x80000000
_ERRNO = 0x00050000

# Offsets in struct seccomp_data: number, architecture, instruction pointer, six arguments of eight bytes.
_NUMBER = 0
_ARCHITECTURE = 4
_ARGUMENT_0 = 16
_ARGUMENT_1 = 24

_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_FAMILIES = (1, 2, 10, 16)  # UNIX, INET, INET6, NETLINK
_TIOCSTI = 0x5412
_TIOCLINUX = 0x541C

_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


class _Program:
    """Instructions with named jump targets, resolved at the end: a miscounted offset would open or close everything."""

    def __init__(self) -> None:
        self._instructions: list[tuple[int, str | int, str | int, int]] = []
        self._labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        self._labels[name] = len(self._instructions)

    def load(self, offset: int) -> None:
        self._instructions.append((_LOAD_WORD, 0, 0, offset))

    def jump(self, code: int, value: int, *, true: str | int = 0, false: str | int = 0) -> None:
        self._instructions.append((code, true, false, value))

    def give(self, value: int) -> None:
        self._instructions.append((_RETURN, 0, 0, value))

    def assemble(self) -> bytes:
        packed = []
        for at, (code, true, false, value) in enumerate(self._instructions):
            offsets = [self._labels[to] - at - 1 if isinstance(to, str) else to for to in (true, false)]
            if not all(0 <= offset <= 255 for offset in offsets):
                raise ValueError(f"jump out of reach at instruction {at}")
            packed.append(struct.pack("<HBBI", code, *offsets, value))
        return b"".join(packed)


def fail_with(number: int) -> int:
    """Returns the filter's answer "the call fails with this errno"."""
    return _ERRNO | number


def build_filter(machine: str | None = None) -> bytes:
    """Returns the program as the bytes that ``bwrap --seccomp`` reads.

    Args:
        machine: ``x86_64`` or ``aarch64``; ``None`` means this machine's. The aarch64 numbers come from the kernel's
            headers and have not been run.

    Raises:
        RuntimeUnavailableError: There is no filter for this architecture.
    """
    machine = machine or platform.machine()
    if machine not in _AUDIT_ARCHITECTURE:
        raise RuntimeUnavailableError(
            f"no system call filter for architecture {machine!r}; bubblewrap sandboxes need x86_64 or aarch64"
        )
    known = numbers(machine)
    program = _Program()
    program.load(_ARCHITECTURE)
    program.jump(_JUMP_EQUAL, _AUDIT_ARCHITECTURE[machine], false="kill")
    program.load(_NUMBER)
    if machine == "x86_64":
        program.jump(_JUMP_AT_LEAST, _X32_BIT, true="absent")
    # The flags of clone3 lie in memory, out of a filter's sight; libraries fall back to clone when it is absent.
    program.jump(_JUMP_EQUAL, known["clone3"], true="absent")
    for name in ("clone", "ioctl", "socket"):
        program.jump(_JUMP_EQUAL, known[name], true=name)
    for name, number in known.items():
        if name not in INSPECTED:
            program.jump(_JUMP_EQUAL, number, true="denied")
    program.give(ALLOW)

    program.label("clone")
    program.load(_ARGUMENT_0)
    program.jump(_JUMP_ANY_BIT, _NEW_NAMESPACES, true="denied", false="allowed")

    # Both put characters into a terminal's input.
    program.label("ioctl")
    program.load(_ARGUMENT_1)
    program.jump(_JUMP_EQUAL, _TIOCSTI, true="denied")
    program.jump(_JUMP_EQUAL, _TIOCLINUX, true="denied", false="allowed")

    program.label("socket")
    program.load(_ARGUMENT_0)
    for family in _FAMILIES:
        program.jump(_JUMP_EQUAL, family, true="allowed")
    program.give(fail_with(errno.EAFNOSUPPORT))

    program.label("denied")
    program.give(fail_with(errno.EPERM))
    program.label("absent")
    program.give(fail_with(errno.ENOSYS))
    program.label("kill")
    program.give(KILL)
    program.label("allowed")
    program.give(ALLOW)
    return program.assemble()
