"""The checks of ``tests.local.runtime.test_sessions`` against containers."""

from tests.local.runtime.test_sessions import *  # noqa: F403
