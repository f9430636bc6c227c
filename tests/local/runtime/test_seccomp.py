"""The filter, run by an interpreter of classic BPF: what every call gets, on both architectures."""

from __future__ import annotations

import errno
import struct

import pytest

from sandbox.local.runtime.errors import RuntimeUnavailableError
from sandbox.local.runtime.seccomp import ALLOW, KILL, build_filter, fail_with
from sandbox.local.runtime.syscalls import INSPECTED, numbers

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
DENIED = fail_with(errno.EPERM)
ABSENT = fail_with(errno.ENOSYS)


def interpret(program: bytes, *, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Runs a filter over one call, as the kernel does."""
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, architecture, 0, *padded)
    instructions = list(struct.iter_unpack("<HBBI", program))
    accumulator = at = 0
    while True:
        code, true, false, value = instructions[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            assert isinstance(value, int)
            return value
        else:
            taken = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            at += true if taken else false


@pytest.fixture(params=sorted(ARCHITECTURES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def answer(machine: str, name: str, *arguments: int) -> int:
    number = numbers(machine)[name]
    architecture = ARCHITECTURES[machine]
    return interpret(build_filter(machine), architecture=architecture, number=number, arguments=arguments)


def test_every_listed_call_is_denied(machine: str) -> None:
    for name in numbers(machine):
        if name not in INSPECTED:
            assert answer(machine, name) == DENIED, name


def test_every_other_call_is_allowed(machine: str) -> None:
    listed = set(numbers(machine).values())
    program = build_filter(machine)
    for number in range(600):
        if number not in listed:
            assert interpret(program, architecture=ARCHITECTURES[machine], number=number) == ALLOW, number


def test_foreign_architectures_are_killed(machine: str) -> None:
    program = build_filter(machine)
    other = next(value for name, value in ARCHITECTURES.items() if name != machine)
    for architecture in (other, 0x40000003, 0, 0xFFFFFFFF):
        assert interpret(program, architecture=architecture, number=0) == KILL


def test_the_second_numbering_of_x86_64_is_absent() -> None:
    program = build_filter("x86_64")
    for number in (0x40000000, 0x40000000 + 101, 0xFFFFFFFF):
        assert interpret(program, architecture=ARCHITECTURES["x86_64"], number=number) == ABSENT


def test_processes_can_be_made_but_no_namespaces(machine: str) -> None:
    assert answer(machine, "clone", 17) == ALLOW
    assert answer(machine, "clone", 0x3D0F00) == ALLOW
    for bit in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(machine, "clone", bit | 17) == DENIED
    assert answer(machine, "clone3", 0) == ABSENT


def test_nothing_can_be_typed_into_a_terminal(machine: str) -> None:
    assert answer(machine, "ioctl", 0, 0x5412) == DENIED
    assert answer(machine, "ioctl", 0, 0x541C) == DENIED
    # The kernel takes 32 bits of the request; a filter that compared more could be passed by.
    assert answer(machine, "ioctl", 0, 0x5412 | 1 << 32) == DENIED
    assert answer(machine, "ioctl", 0, 0x5401) == ALLOW


def test_only_sockets_of_the_network_namespace(machine: str) -> None:
    allowed = {1, 2, 10, 16}
    for family in range(64):
        expected = ALLOW if family in allowed else fail_with(errno.EAFNOSUPPORT)
        assert answer(machine, "socket", family) == expected, family


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(RuntimeUnavailableError, match="riscv64"):
        build_filter("riscv64")
