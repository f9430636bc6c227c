"""The checks of ``tests.local.runtime.test_network`` against containers."""

from tests.local.runtime.test_network import *  # noqa: F403
