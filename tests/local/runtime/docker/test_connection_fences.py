"""The checks of ``tests.local.runtime.test_connection_fences`` against containers."""

from tests.local.runtime.test_connection_fences import *  # noqa: F403
