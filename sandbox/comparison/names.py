"""Names of members: which spellings are the same name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sandbox.comparison.rules import ComparisonRules, NameRule

_SEPARATORS: Final = re.compile(r"[_\-\s]+")
REMEMBERED: Final = 10_000
_OWN: Final = "\0"


class Names:
    """The canonical names of members under the rules.

    Args:
        rules: ``names`` and ``aliases`` matter.
    """

    def __init__(self, rules: ComparisonRules) -> None:
        self._words = rules.names is NameRule.WORDS
        self._aliases: Mapping[str, str] = {
            self.spelling(name): self.spelling(target) for name, target in rules.aliases.items()
        }
        self.exact = not self._words and not self._aliases
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}

    def of(self, key: str) -> str:
        """Returns the canonical form of one name."""
        spelling = self.spelling(key)
        return self._aliases.get(spelling, spelling)

    def of_all(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the canonical names of an object's members.

        Members of one object whose names would become the same keep their own spelling, so that none is lost.
        """
        if self.exact:
            return keys
        names = self._known.get(keys)
        if names is None:
            names = tuple(self.of(key) for key in keys)
            if len(set(names)) < len(names):
                seen: dict[str, int] = {}
                for name in names:
                    seen[name] = seen.get(name, 0) + 1
                names = tuple(name if seen[name] == 1 else _OWN + key for name, key in zip(names, keys, strict=True))
            if len(self._known) < REMEMBERED:
                self._known[keys] = names
        return names

    def spelling(self, key: str) -> str:
        """Returns the form that all spellings of a name share; aliases are not looked at."""
        return (_SEPARATORS.sub("", key).casefold() or key) if self._words else key
