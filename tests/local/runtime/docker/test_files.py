"""The checks of ``tests.local.runtime.test_files`` against containers."""

from tests.local.runtime.test_files import *  # noqa: F403
