"""The checks of ``tests.local.runtime.test_processes`` against containers."""

from tests.local.runtime.test_processes import *  # noqa: F403
