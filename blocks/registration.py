"""Makes the block types known to a Prefect server, with one profile document per built-in profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prefect.exceptions import ObjectNotFound

from blocks.credentials import DaytonaCredentials
from blocks.database import DatabaseConnection
from blocks.profile import SandboxProfile
from sandbox.profiles import builtin_profile, builtin_profile_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What happened to one block type or document.

    Attributes:
        name: Slug of the type, or slug and name of the document.
        action: ``registered`` (types), ``created``, ``updated``, ``unchanged``, or ``kept`` because a person edited it.
    """

    name: str
    action: Literal["registered", "created", "updated", "unchanged", "kept"]


async def register_blocks(*, overwrite: bool = False) -> list[Registration]:
    """Registers the block types and stores the built-in profiles; safe to repeat, meant for after every upgrade.

    A document that nobody edited follows the built-in profile; an edited one is kept.

    Args:
        overwrite: Replaces edited documents too.
    """
    done: list[Registration] = []
    for block_type in (DaytonaCredentials, DatabaseConnection, SandboxProfile):
        await block_type.aregister_type_and_schema()
        done.append(Registration(name=block_type.get_block_type_slug(), action="registered"))
    for name in builtin_profile_names():
        done.append(await _store(name, overwrite=overwrite))  # noqa: PERF401
    return done


async def _store(name: str, *, overwrite: bool) -> Registration:
    document = f"{SandboxProfile.get_block_type_slug()}/{name}"
    wanted = SandboxProfile.from_profile(builtin_profile(name), built_in=True)
    try:
        # Not validated: a document of an older version may lack fields, and is to be replaced then.
        stored: SandboxProfile = await SandboxProfile.aload(name, validate=False)
    except ValueError as error:
        if not isinstance(error.__cause__, ObjectNotFound):
            raise
        await wanted.asave(name)
        return Registration(name=document, action="created")
    if stored.digest() == wanted.digest() and stored.built_in == wanted.built_in:
        return Registration(name=document, action="unchanged")
    if stored.edited and not overwrite:
        return Registration(name=document, action="kept")
    await wanted.asave(name, overwrite=True)
    return Registration(name=document, action="updated")
