"""A listening socket that came out of a box."""

from __future__ import annotations

import os
import socket

from .errors import BoxLostError


def adopted(descriptor: int) -> socket.socket:
    """Returns the socket behind a descriptor that the agent has sent; owns the descriptor from now on.

    Raises:
        BoxLostError: It is no listening TCP socket.
    """
    try:
        listening = socket.socket(fileno=descriptor)
    except OSError as error:
        os.close(descriptor)
        raise BoxLostError("the box's agent sent something that is no socket") from error
    inet = listening.family in (socket.AF_INET, socket.AF_INET6) and listening.type == socket.SOCK_STREAM
    if not inet or not listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        listening.close()
        raise BoxLostError("the box's agent sent something that is no listening socket")
    listening.setblocking(False)
    return listening
