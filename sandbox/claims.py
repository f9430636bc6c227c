"""Which runs this process validates: two in one directory would overwrite each other's files and end each other."""

from __future__ import annotations

from typing import Final

from sandbox.errors import ConfigurationError

_under_way: Final[set[tuple[str, str, str]]] = set()


class Claim:
    """The claim of one run to its directory.

    Args:
        sandbox: Name of the sandbox.
        thread_id: The conversation.
        run_id: The run.
    """

    def __init__(self, sandbox: str, thread_id: str, run_id: str) -> None:
        self._key = (sandbox, thread_id, run_id)
        self._held = False

    def take(self) -> None:
        """Takes the directory; may be called twice.

        Raises:
            ConfigurationError: Another run has it.
        """
        if self._held:
            return
        if self._key in _under_way:
            raise ConfigurationError(
                f"a run {self._key[2]!r} of thread {self._key[1]!r} is under way",
                field="run_id",
                remedy="Give each run an id of its own, or none.",
            )
        _under_way.add(self._key)
        self._held = True

    def give_back(self) -> None:
        """Gives the directory back; may be called twice."""
        if self._held:
            self._held = False
            _under_way.discard(self._key)
