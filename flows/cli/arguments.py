"""The words of the command line. Each command names the module that runs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from flows.outcomes import EXIT_USAGE, comparison_exit_code_table, exit_code_table
from sandbox.feedback import SMALLEST_BUDGET

DESCRIPTION: Final = """\
Compiles and runs untrusted programs in isolated sandboxes and tells the verdict.
Without a Daytona key it works on this machine alone; `uom-sandbox doctor` tells what works here."""

VALIDATE: Final = """\
Validates one program. Its output appears live, standard output on standard output and standard error on standard
error; lines about the run go to standard error."""

SUBMIT: Final = """\
Hands one program to a deployment, for a worker that may be on another machine, and prints the id of the flow run; see
`uom-sandbox watch`. Secrets and addresses of databases travel as names of Prefect blocks."""

CONNECTION: Final = (
    "a database the program may talk to: NAME of a DatabaseConnection block, or KIND=env:VARIABLE, where VARIABLE of "
    "the caller's environment holds the address (never the address itself); KIND is postgresql, sqlserver, sqlite, "
    "mongodb or neo4j; with KIND:NAME=env:VARIABLE the program finds it in NAME; may be repeated"
)

COMPARE: Final = """\
Runs a program and its translation in sandboxes, both at once, and compares what they compute, query by query. The
report is on standard output; what the programs print and lines about the runs go to standard error.

Nothing that differs is accepted unless a rule says so: --rules FILE (TOML or JSON), and --rule for single ones, such as
  --rule rows=unordered --rule names=words --rule dates.naive=utc --rule absolute_tolerance=0.01
  --rule 'ignored=["$..createdAt"]' --rule 'ids=[{"paths": ["$..orderId"]}]'

With --results, two result files are compared and nothing is run: the JSON that a program wrote, or what
`uom-sandbox validate --json` printed."""


class _Parser(argparse.ArgumentParser):
    """Ends with the exit code of wrong usage, and keeps the line breaks of our texts."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter, **options})

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


class _Version(argparse.Action):
    """Does what the command ``version`` does, and ends."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option: str | None = None,
    ) -> None:
        from flows.cli.versions import run

        parser.exit(run(namespace))


class _Assignment(argparse.Action):
    """Collects ``NAME=VALUE`` into a dictionary."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option: str | None = None,
    ) -> None:
        name, equals, value = str(values).partition("=")
        if not equals or not name:
            parser.error(f"{option} takes NAME=VALUE, not {values!r}")
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), name: value})


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command line."""
    top = _Parser(prog="uom-sandbox", description=DESCRIPTION)
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=_Parser)
    _validate(commands)
    _compare(commands)
    _submit(commands)
    _watch(commands)
    _demo(commands)
    profiles = _command(commands, "profiles", "flows.cli.profiles", "list the profiles, or show one")
    profiles.set_defaults(name=None)
    shown = profiles.add_subparsers(metavar="show NAME", parser_class=_Parser)
    show = shown.add_parser("show", help="show one profile as JSON")
    show.add_argument("name", metavar="NAME")
    show.set_defaults(module="flows.cli.profiles")
    doctor = _command(
        commands, "doctor", "flows.cli.doctor", "tell what works on this machine, and what to do about the rest"
    )
    doctor.add_argument("--json", action="store_true", help="machine-readable")
    config = _command(commands, "config", "flows.cli.config", "tell every setting, and where its value comes from")
    config.add_argument("--json", action="store_true", help="machine-readable")
    _platform(commands)
    _command(commands, "up", "flows.cli.services", "start the local platform and the Prefect server").set_defaults(
        action="up"
    )
    _command(commands, "down", "flows.cli.services", "stop them").set_defaults(action="down")
    blocks = commands.add_parser("blocks", help="Prefect blocks")
    blocks_actions = blocks.add_subparsers(required=True, metavar="ACTION", parser_class=_Parser)
    register = _command(
        blocks_actions, "register", "flows.cli.blocks", "register the block types and the built-in profiles"
    )
    register.add_argument("--overwrite", action="store_true", help="replace profile documents that were edited, too")
    automations = commands.add_parser("automations", help="Prefect automations")
    automations_actions = automations.add_subparsers(required=True, metavar="ACTION", parser_class=_Parser)
    detection = _command(
        automations_actions, "register", "flows.cli.automations", "end runs whose process died, by an automation"
    )
    detection.add_argument(
        "--silent", type=_seconds, default=240.0, metavar="SECONDS", help="how long a run may send no heartbeat (240)"
    )
    warm = _command(commands, "warm", "flows.cli.warm", "build, prove and refresh snapshots ahead of need")
    warm.add_argument(
        "profiles",
        nargs="*",
        metavar="PROFILE[/FRAMEWORK]",
        help="which; all snapshots of the built-in ones by default",
    )
    sweep = _command(commands, "sweep", "flows.cli.sweep", "remove the sandboxes of ours that no live run owns")
    sweep.add_argument(
        "--owner",
        action="append",
        default=[],
        metavar="USER@HOST",
        help="only those that this one has made; may be repeated; everybody's by default",
    )
    sweep.add_argument("--dry-run", action="store_true", help="tell what would be done, and do nothing")
    _command(commands, "version", "flows.cli.versions", "print versions")
    top.add_argument("--version", action=_Version, nargs=0, help="print versions, as the command does")
    return top


def _command(commands: Any, name: str, module: str, text: str, **options: Any) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=text, **{"description": f"{text[0].upper()}{text[1:]}.", **options}
    )
    made.set_defaults(module=module)
    return made


def _validate(commands: Any) -> None:
    command = _command(
        commands,
        "validate",
        "flows.cli.validate",
        "validate one program",
        description=VALIDATE,
        epilog=f"exit codes:\n{exit_code_table()}",
    )
    _program(command, own_profile=True)
    command.add_argument(
        "--secret-env",
        action="append",
        default=[],
        metavar="NAME",
        help="pass this variable of the caller's environment on, as a secret",
    )
    command.add_argument("--connection", action="append", default=[], metavar="DATABASE", help=CONNECTION)
    command.add_argument(
        "--json",
        action="store_true",
        help="print the verdict as JSON on standard output; live output on standard error",
    )
    command.add_argument("--quiet", action="store_true", help="no live output and no lines about the run")


def _program(command: argparse.ArgumentParser, *, own_profile: bool) -> None:
    """What a program is and how it runs, for commands that validate one."""
    command.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a source file, or a directory with all its files"
    )
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("--profile", metavar="NAME", help="language environment, such as java")
    if own_profile:
        which.add_argument("--profile-file", type=Path, metavar="FILE", help="a profile of your own, TOML or JSON")
    command.add_argument("--framework", metavar="NAME", help="project template inside the profile")
    command.add_argument("--entry-point", metavar="FILE", help="the file that is the program, where there are several")
    command.add_argument("--thread", metavar="ID", help="conversation the run belongs to")
    command.add_argument("--isolation", choices=("shared", "thread", "run"), help="who shares the sandbox")
    command.add_argument(
        "--env", action=_Assignment, default={}, metavar="NAME=VALUE", help="environment variable of the program"
    )
    command.add_argument("--stdin", type=Path, metavar="FILE", help="standard input of the program")
    command.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="for all phases together")
    command.add_argument("--expected", type=Path, metavar="FILE", help="JSON that the result must equal")


def _submit(commands: Any) -> None:
    command = _command(
        commands,
        "submit",
        "flows.cli.submit",
        "have a worker validate one program",
        description=SUBMIT,
        epilog=f"exit codes with --watch:\n{exit_code_table()}",
    )
    _program(command, own_profile=False)
    command.set_defaults(secret_env=[])
    command.add_argument(
        "--deployment",
        metavar="FLOW/NAME",
        help="which deployment; by default validate/validate-PROFILE",
    )
    command.add_argument(
        "--secret-block",
        action=_Assignment,
        default={},
        metavar="VARIABLE=BLOCK",
        help="a secret of the program: its variable and the Prefect Secret block that holds it",
    )
    command.add_argument(
        "--connection",
        action="append",
        default=[],
        metavar="BLOCK",
        help="a database the program may talk to: a DatabaseConnection block",
    )
    command.add_argument("--credentials", metavar="BLOCK", help="where to run: a DaytonaCredentials block")
    shown = command.add_mutually_exclusive_group()
    shown.add_argument("--watch", action="store_true", help="go on as `uom-sandbox watch` does, to the verdict")
    shown.add_argument("--json", action="store_true", help="print id, name and address of the run as JSON")


def _compare(commands: Any) -> None:
    command = _command(
        commands,
        "compare",
        "flows.cli.compare",
        "compare a translation with its source",
        description=COMPARE,
        epilog=f"exit codes:\n{comparison_exit_code_table()}",
    )
    command.add_argument(
        "source", type=Path, metavar="SOURCE", help="the program: a file, or a directory with its files"
    )
    command.add_argument("target", type=Path, metavar="TARGET", help="its translation, likewise")
    command.add_argument("--results", action="store_true", help="SOURCE and TARGET are result files; run nothing")
    for side in ("source", "target"):
        command.add_argument(f"--{side}-profile", metavar="NAME", help=f"language environment of the {side}")
        command.add_argument(f"--{side}-framework", metavar="NAME", help=f"project template of the {side}")
        command.add_argument(f"--{side}-entry-point", metavar="FILE", help=f"the file that is the {side}'s program")
        command.add_argument(
            f"--{side}-connection",
            action="append",
            default=[],
            metavar="DATABASE",
            help=f"a database of the {side}; as --connection of validate",
        )
    command.add_argument("--rules", type=Path, metavar="FILE", help="rules of the comparison, TOML or JSON")
    command.add_argument(
        "--rule", action=_Assignment, default={}, metavar="NAME=VALUE", help="one rule; the value may be JSON"
    )
    command.add_argument("--thread", metavar="ID", help="conversation the runs belong to")
    command.add_argument("--isolation", choices=("shared", "thread", "run"), help="who shares the sandboxes")
    command.add_argument(
        "--env", action=_Assignment, default={}, metavar="NAME=VALUE", help="environment variable of both programs"
    )
    command.add_argument(
        "--secret-env",
        action="append",
        default=[],
        metavar="NAME",
        help="pass this variable of the caller's environment on to both, as a secret",
    )
    command.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="for all phases of a side together")
    shown = command.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print the verdict as JSON instead of the report")
    shown.add_argument(
        "--feedback", type=_characters, metavar="CHARS", help="print at most so many characters, written for a model"
    )
    command.add_argument("--quiet", action="store_true", help="no live output and no lines about the runs")


def _watch(commands: Any) -> None:
    command = _command(
        commands,
        "watch",
        "flows.cli.watch",
        "watch a run, also one of a worker elsewhere, to its end",
        epilog=f"exit codes:\n{exit_code_table()}",
    )
    command.add_argument("run", metavar="RUN", help="id or name of the flow run; of several with one name the newest")
    command.add_argument(
        "--from", dest="from_seq", type=_number, default=1, metavar="SEQ", help="number of the first event to show (1)"
    )
    command.add_argument("--json", action="store_true", help="print events as JSON, one a line, on standard output")


def _demo(commands: Any) -> None:
    command = _command(commands, "demo", "flows.cli.demo", "validate the examples, each with the verdict it must get")
    command.add_argument("names", nargs="*", metavar="NAME", help="examples to run; all by default")
    command.add_argument("--all", action="store_true", help="every example (the default)")
    command.add_argument("--examples", type=Path, metavar="DIR", help="directory of the examples")


def _platform(commands: Any) -> None:
    platform = commands.add_parser("platform", help="the local platform", description="The local platform.")
    actions = platform.add_subparsers(required=True, metavar="ACTION", parser_class=_Parser)
    for name, text in (
        ("start", "start it in the background, or find the one that runs"),
        ("stop", "stop it; snapshots and the disks of sandboxes stay"),
        ("status", "tell whether it runs"),
        ("logs", "print the end of its log"),
        ("reset", "stop it and remove all its snapshots and sandboxes"),
    ):
        action = _command(actions, name, "flows.cli.services", text)
        action.set_defaults(action=f"platform {name}")
        if name == "logs":
            action.add_argument("--lines", type=int, default=100, metavar="N", help="how many lines (100)")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError("must be more than 0 and at most 86400 seconds")
    return value


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def _characters(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of characters") from None
    if value < SMALLEST_BUDGET:
        raise argparse.ArgumentTypeError(f"must be at least {SMALLEST_BUDGET}")
    return value
