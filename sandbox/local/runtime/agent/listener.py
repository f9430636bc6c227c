"""Listening sockets in the box's network namespace, handed to the server, which accepts on them."""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, SO_REUSEADDR, SOCK_CLOEXEC, SOCK_STREAM, SOL_SOCKET, socket


def listen(address: str, port: int) -> int:
    """Returns the descriptor of a socket that listens on one address of the box."""
    listening = socket(AF_INET6 if ":" in address else AF_INET, SOCK_STREAM | SOCK_CLOEXEC)
    try:
        listening.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening.detach()
