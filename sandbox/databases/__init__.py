"""Databases that a program talks to: how they are named, reached, told to the program, and checked beforehand.

A request names them as ``DatabaseConnection``. From that follow the endpoints that its sandbox may reach, the variables
that the program finds in its environment, and what must never be shown.
"""

from sandbox.databases.connection import DatabaseConnection
from sandbox.databases.endpoints import Endpoint
from sandbox.databases.kinds import DatabaseKind

__all__ = ["DatabaseConnection", "DatabaseKind", "Endpoint"]
