"""Prefect blocks: credentials for a Daytona API, databases of programs, and profiles to edit in the Prefect UI.

Prefect finds block types by importing this package, so everything is imported here.
"""

from __future__ import annotations

from blocks.credentials import DaytonaCredentials
from blocks.database import DatabaseConnection
from blocks.profile import SandboxProfile
from blocks.registration import Registration, register_blocks

__all__ = ["DatabaseConnection", "DaytonaCredentials", "Registration", "SandboxProfile", "register_blocks"]
