"""Which profile a name stands for: a stored block wins over a built-in profile of the same name."""

from __future__ import annotations

import logging
from typing import TypeAlias

from blocks.profile import stored_profile
from sandbox.errors import ConfigurationError
from sandbox.profiles import Profile, builtin_profile, builtin_profile_names

Logger: TypeAlias = "logging.Logger | logging.LoggerAdapter[logging.Logger]"


async def choose_profile(name: str, *, logger: Logger) -> Profile:
    """Returns the profile of a name, and logs where it came from.

    Only a block that does not exist makes way for the built-in profile; a broken one is an error.

    Args:
        name: Name of the profile.
        logger: Of the run.

    Raises:
        ConfigurationError: There is neither, or the stored one is wrong.
    """
    stored = await stored_profile(name)
    if stored is not None:
        logger.info("profile %s: the stored block", name)
        return stored
    if name not in builtin_profile_names():
        raise ConfigurationError(
            f"no profile {name!r}: neither a stored block nor built in",
            field="profile",
            remedy=f"Built in: {', '.join(builtin_profile_names())}.",
        )
    logger.info("profile %s: built in", name)
    return builtin_profile(name)
