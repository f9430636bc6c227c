"""One table of outcomes: what each means to a shell, to the Prefect UI and to a reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sandbox.comparison.verdicts import TranslationOutcome
from sandbox.models import Outcome

EXIT_PASSED: Final = 0
EXIT_DIFFERS: Final = 1
"""``demo``: a verdict is not the expected one; ``doctor``: something needed is missing."""

EXIT_USAGE: Final = 64
EXIT_INFRASTRUCTURE: Final = 70
EXIT_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRow:
    """How one outcome is told.

    Attributes:
        exit_code: Of ``uom-sandbox validate`` or ``compare``.
        colour: Name of the ANSI colour on a terminal.
        symbol: One character before the word.
        meaning: What it says about the program or translation, for the help text.
    """

    exit_code: int
    colour: str
    symbol: str
    meaning: str


OUTCOMES: Final[dict[Outcome, OutcomeRow]] = {
    outcome: OutcomeRow(exit_code=exit_code, colour=colour, symbol=symbol, meaning=meaning)
    for outcome, exit_code, colour, symbol, meaning in (
        (Outcome.PASSED, EXIT_PASSED, "green", "✔", "it compiled, ran and gave what was asked for"),
        (Outcome.COMPILE_ERROR, 10, "red", "✘", "the compiler refused it"),
        (Outcome.RUNTIME_ERROR, 11, "red", "✘", "it ended with an error"),
        (Outcome.TIMEOUT, 12, "red", "✘", "it reached its time limit"),
        (Outcome.STALLED, 13, "red", "✘", "it printed nothing for too long"),
        (Outcome.MEMORY_EXCEEDED, 14, "red", "✘", "it needed more memory than it has"),
        (Outcome.OUTPUT_EXCEEDED, 15, "red", "✘", "it printed more than it may"),
        (Outcome.RESULT_MISSING, 16, "red", "✘", "it wrote no result file"),
        (Outcome.RESULT_INVALID, 17, "red", "✘", "its result file is not valid JSON, or too large"),
        (Outcome.MISMATCH, 18, "red", "✘", "its result is not the expected one"),
        (Outcome.TOOL_MISSING, 19, "yellow", "!", "a compiler or tool it needs is not in the sandbox"),
        (Outcome.DATABASE_UNREACHABLE, 20, "yellow", "!", "a database it needs did not answer"),
        (Outcome.CANCELLED, 21, "yellow", "!", "it was cancelled"),
    )
}


TRANSLATIONS: Final[dict[TranslationOutcome, OutcomeRow]] = {
    outcome: OutcomeRow(exit_code=exit_code, colour=colour, symbol=symbol, meaning=meaning)
    for outcome, exit_code, colour, symbol, meaning in (
        (TranslationOutcome.EQUIVALENT, EXIT_PASSED, "green", "✔", "both gave the same under the rules"),
        (TranslationOutcome.DIFFERENT, 30, "red", "✘", "a query is different, missing or failed"),
        (TranslationOutcome.SOURCE_FAILED, 31, "yellow", "!", "the program that was translated gave no result"),
        (TranslationOutcome.TARGET_FAILED, 32, "red", "✘", "the translation gave no result"),
        (TranslationOutcome.BOTH_FAILED, 33, "yellow", "!", "neither gave a result"),
        (TranslationOutcome.NOTHING_COMPARED, 34, "yellow", "!", "there was no query to compare"),
    )
}


def comparison_exit_code_table() -> str:
    """Returns the table of exit codes of ``compare`` as text, one line each."""
    rows = [(row.exit_code, f"{outcome.value}: {row.meaning}") for outcome, row in TRANSLATIONS.items()]
    rows += [
        (EXIT_USAGE, "the command line, a file, a rule or a setting is wrong"),
        (EXIT_INFRASTRUCTURE, "no verdict: the platform or the Prefect server failed"),
        (EXIT_INTERRUPTED, "interrupted by Ctrl-C; the sandboxes were cleaned up"),
    ]
    return "\n".join(f"  {code:>3}  {text}" for code, text in sorted(rows))


def exit_code_table() -> str:
    """Returns the table of exit codes as text, one line each."""
    rows = [(row.exit_code, outcome.value, row.meaning) for outcome, row in OUTCOMES.items()]
    rows += [
        (EXIT_DIFFERS, "", "demo: a verdict differs from the expected one; doctor: something needed is missing"),
        (EXIT_USAGE, "", "the command line, a file or a setting is wrong"),
        (EXIT_INFRASTRUCTURE, "", "no verdict: the platform or the Prefect server failed"),
        (EXIT_INTERRUPTED, "", "interrupted by Ctrl-C; the sandbox was cleaned up"),
    ]
    return "\n".join(f"  {code:>3}  {f'{word}: ' if word else ''}{meaning}" for code, word, meaning in sorted(rows))
