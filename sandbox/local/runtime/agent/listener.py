"""A listening socket in the box's network namespace, handed to the server, which accepts on it."""

from __future__ import annotations

from _socket import AF_INET, SO_REUSEADDR, SOCK_CLOEXEC, SOCK_STREAM, SOL_SOCKET, socket


def listen(port: int) -> int:
    """Returns the descriptor of a socket that listens on 127.0.0.1 in the box."""
    listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC)
    try:
        listening.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening.detach()
