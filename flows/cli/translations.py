"""The examples of translations: two examples, what goes wrong in the target, and the verdict that must be given."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.cli.examples import load_example
from sandbox.comparison import ComparisonRules, QueryStatus, TranslationOutcome, checked_rules
from sandbox.errors import ConfigurationError
from sandbox.models import ValidationRequest
from sandbox.translation import TranslationResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """One example.

    Attributes:
        name: Name of its file.
        title: One line for people.
        source: The program that was translated.
        target: Its translation, with the mistakes of the example.
        rules: Which differences are accepted.
        verdict: The outcome it must get.
        queries: The status that these queries must get.
        missing: As for ``Example``, of both.
        accepted: The rules that must have accepted something, and no others.
    """

    name: str
    title: str
    source: ValidationRequest
    target: ValidationRequest
    rules: ComparisonRules
    verdict: TranslationOutcome
    queries: Mapping[str, QueryStatus]
    missing: tuple[str, ...] = ()
    accepted: frozenset[str]

    def faults(self, result: TranslationResult) -> list[str]:
        """Returns what in a result is not as it must be, one line each."""
        faults = []
        if result.outcome is not self.verdict:
            faults.append(f"{result.outcome.value} instead of {self.verdict.value}: {result.message}")
        found = {query.name: query.status for query in result.queries}
        faults += [
            f"{name}: {found[name].value if name in found else 'no verdict'} instead of {status.value}"
            for name, status in self.queries.items()
            if found.get(name) is not status
        ]
        accepted = {one.rule for one in result.comparison.accepted} if result.comparison else set()
        if accepted != self.accepted:
            faults.append(f"accepted by {sorted(accepted)} instead of {sorted(self.accepted)}")
        return faults


def translation_files(examples: Path) -> list[Path]:
    """Returns the descriptions of all translations, by name."""
    return sorted((examples / "translations").glob("*.toml"))


def load_translation(path: Path) -> Translation:
    """Reads an example.

    Raises:
        ConfigurationError: Its description or a program of it is missing or wrong; the text names it.
    """
    examples = path.parent.parent
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        pair = [load_example(examples / document[side]) for side in ("source", "target")]
        source, target = (example.request for example in pair)
        return Translation(
            name=path.stem,
            title=document["title"],
            source=source.model_copy(update={"expected": None}),
            target=_edited(target, document.get("edits", ()), path).model_copy(update={"expected": None}),
            rules=checked_rules(document.get("rules", {}), field=f"{path}: rules"),
            verdict=TranslationOutcome(document["verdict"]),
            queries={name: QueryStatus(status) for name, status in document.get("queries", {}).items()},
            missing=tuple(dict.fromkeys(name for example in pair for name in example.missing)),
            accepted=frozenset(document.get("accepted", ())),
        )
    except KeyError as error:
        raise ConfigurationError("is missing", field=f"{path}: {error.args[0]}") from None
    except ConfigurationError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the example {path} cannot be read: {error}") from None


def _edited(request: ValidationRequest, edits: Any, path: Path) -> ValidationRequest:
    files = dict(request.files)
    for edit in edits:
        text = files[edit["file"]]
        if not isinstance(text, str) or text.count(edit["find"]) != 1:
            raise ConfigurationError(f"{edit['find']!r} is not exactly once in {edit['file']}", field=f"{path}: edits")
        files[edit["file"]] = text.replace(edit["find"], edit["put"])
    return request.model_copy(update={"files": files})
