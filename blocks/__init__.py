"""Prefect blocks: credentials for a Daytona API, and profiles that a user can edit in the Prefect UI.

Prefect finds block types by importing this package, so everything is imported here.
"""

from __future__ import annotations

from blocks.credentials import DaytonaCredentials
from blocks.profile import SandboxProfile
from blocks.registration import Registration, register_blocks

__all__ = ["DaytonaCredentials", "Registration", "SandboxProfile", "register_blocks"]
