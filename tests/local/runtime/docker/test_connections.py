"""The checks of ``tests.local.runtime.test_connections`` against containers."""

from tests.local.runtime.test_connections import *  # noqa: F403
