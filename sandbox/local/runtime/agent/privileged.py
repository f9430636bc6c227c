"""What has to be done to a box's network with a capability before its agent can listen; a program of its own.

Nothing inside a box ever has a capability. This runs outside, as the user to whom the box's user namespace belongs and
who therefore has every capability in it (user_namespaces(7)), or in a container of its own that shares the network of a
box. It reads nothing that a program of the box can write.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import sys
from _socket import AF_INET, AF_INET6, AF_NETLINK, SOCK_RAW, if_nametoindex, inet_pton, socket

# linux/nsfs.h, linux/sched.h, linux/rtnetlink.h, linux/netlink.h, linux/if_addr.h
_NS_GET_USERNS = 0xB701
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_RTM_NEWADDR = 20
_REQUEST_ACK_REPLACE_CREATE = 0x1 | 0x4 | 0x100 | 0x400
_IFA_ADDRESS = 1
_IFA_LOCAL = 2
_IFA_F_NODAD = 0x02
_LOWEST_PORT = "/proc/sys/net/ipv4/ip_unprivileged_port_start"


def enter(pid: int) -> None:
    """Joins the network namespace of a process, by way of the user namespace to which it belongs."""
    setns = ctypes.CDLL(None, use_errno=True).setns
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    owner = fcntl.ioctl(network, _NS_GET_USERNS)
    for descriptor, kind in ((owner, _CLONE_NEWUSER), (network, _CLONE_NEWNET)):
        if setns(descriptor, kind) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot join a namespace: {os.strerror(number)}")
        os.close(descriptor)


def allow_ports(lowest: int) -> None:
    """Lets processes without a capability bind ports from ``lowest`` on (ip(7), ip_unprivileged_port_start)."""
    descriptor = os.open(_LOWEST_PORT, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(lowest).encode("ascii"))
    finally:
        os.close(descriptor)


def make_local(address: str) -> None:
    """Gives the loopback interface an address, for itself alone (rtnetlink(7))."""
    family = AF_INET6 if ":" in address else AF_INET
    raw = inet_pton(family, address)
    head = bytes((int(family), 8 * len(raw), _IFA_F_NODAD if family == AF_INET6 else 0, 0))
    body = head + _whole(if_nametoindex("lo"), size=4)
    for attribute in (_IFA_LOCAL, _IFA_ADDRESS):
        body += _whole(4 + len(raw), size=2) + _whole(attribute, size=2) + raw
    link = socket(AF_NETLINK, SOCK_RAW, 0)
    try:
        link.send(
            _whole(16 + len(body), size=4)
            + _whole(_RTM_NEWADDR, size=2)
            + _whole(_REQUEST_ACK_REPLACE_CREATE, size=2)
            + _whole(1, size=4)
            + _whole(0, size=4)
            + body
        )
        number = -int.from_bytes(link.recv(4096)[16:20], sys.byteorder, signed=True)
    finally:
        link.close()
    if number != 0:
        raise OSError(number, f"cannot make the address {address} local: {os.strerror(number)}")


def _whole(value: int, *, size: int) -> bytes:
    return value.to_bytes(size, sys.byteorder)


def main() -> None:
    """Does what the command line says: a process whose network it is or 0 for the own one, a port or 0, addresses."""
    pid, lowest, *addresses = sys.argv[1:]
    try:
        if int(pid):
            enter(int(pid))
        if int(lowest):
            allow_ports(int(lowest))
        for address in addresses:
            make_local(address)
    except OSError as error:
        sys.exit(f"{error.filename or ''} {error.strerror}".strip())


if __name__ == "__main__":
    main()
