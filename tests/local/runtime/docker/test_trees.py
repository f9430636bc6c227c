"""The checks of ``tests.local.runtime.test_trees`` against containers."""

from tests.local.runtime.test_trees import *  # noqa: F403

# Programs share the container's limit of processes with the agent, so while a bomb burns no worker can be started.
del test_files_can_be_read_while_a_fork_bomb_burns  # noqa: F821
