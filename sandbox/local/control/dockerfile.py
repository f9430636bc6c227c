"""Image definitions: the part of the Dockerfile language that the local platform can build.

Understood: ``FROM RUN ENV ARG WORKDIR USER LABEL ENTRYPOINT CMD SHELL EXPOSE``, comments, line continuations, the
``escape`` directive and here-documents in ``RUN``. Everything else is refused with its line, as Docker's reference
describes the language; a build never skips what it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .variables import Word, expand, words

MAX_TEXT_BYTES = 4 * 1024 * 1024

_CONTEXT_REASON = (
    "needs a build context, which Daytona clients upload only to encrypted object storage; write files with a "
    "here-document in RUN instead"
)

_HERE_DOCUMENT = re.compile(
    r"\d*<<(?P<dash>-?)(?P<quote>['\"]?)(?P<name>[A-Za-z_][A-Za-z0-9_.]*)(?P=quote)(?:[>|;&)].*)?"
)
_DIRECTIVE = re.compile(r"#\s*(?P<name>[A-Za-z]+)\s*=\s*(?P<value>\S+)\s*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class DockerfileError(ValueError):
    """The definition cannot be built; the text names the line."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


@dataclass(frozen=True, slots=True)
class From:
    """``FROM image``."""

    line: int
    image: str


@dataclass(frozen=True, slots=True)
class Run:
    """``RUN``: shell text, or with ``argv`` the exec form.

    Attributes:
        text: What a log shows, and the shell text of the shell form with its here-documents.
        script: The body when the whole instruction is one here-document, which then is the program.
        network: False for ``--network=none``.
    """

    line: int
    text: str
    argv: tuple[str, ...] | None = None
    script: str | None = None
    network: bool = True


@dataclass(frozen=True, slots=True)
class Env:
    """``ENV``: pairs, not yet expanded."""

    line: int
    pairs: tuple[tuple[str, Word], ...]


@dataclass(frozen=True, slots=True)
class Arg:
    """``ARG``: names with their defaults, not yet expanded; there are no build arguments to override them."""

    line: int
    pairs: tuple[tuple[str, Word | None], ...]


@dataclass(frozen=True, slots=True)
class Workdir:
    """``WORKDIR``, not yet expanded."""

    line: int
    path: Word


@dataclass(frozen=True, slots=True)
class User:
    """``USER``, not yet expanded; recorded, since the runtime has one user."""

    line: int
    name: Word


@dataclass(frozen=True, slots=True)
class Shell:
    """``SHELL``: what the shell forms after it run in."""

    line: int
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entrypoint:
    """``ENTRYPOINT``: exec form as it is, shell form as one string."""

    line: int
    argv: tuple[str, ...]


Instruction = From | Run | Env | Arg | Workdir | User | Shell | Entrypoint


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition that can be built, in its order."""

    image: str
    instructions: tuple[Instruction, ...]

    @property
    def needs_box(self) -> bool:
        """False if nothing in it can only be known or made inside a box."""
        return any(isinstance(step, Run | Env | Arg | Workdir) for step in self.instructions)


@dataclass(frozen=True, slots=True)
class _Raw:
    line: int
    keyword: str
    rest: str
    here_documents: tuple[tuple[str, str], ...]  # (the word that opens it, body)


def parse(text: str) -> Definition:
    """Reads a definition.

    Args:
        text: The Dockerfile.

    Raises:
        DockerfileError: It cannot be built here.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise DockerfileError(f"the definition is larger than {MAX_TEXT_BYTES} bytes", line=1)
    escape, raws = _split(text)
    image: str | None = None
    arguments: dict[str, str] = {}
    steps: list[Instruction] = []
    for raw in raws:
        if image is None and raw.keyword not in ("FROM", "ARG"):
            raise DockerfileError(f"the first instruction must be FROM, not {raw.keyword}", line=raw.line)
        if raw.keyword == "FROM":
            if image is not None:
                raise DockerfileError(
                    "a second FROM is of use only with COPY, which the platform cannot do", line=raw.line
                )
            step = _from(raw, arguments, escape=escape)
            image = step.image
            steps.append(step)
        elif image is None:
            for name, word in _arg(raw, escape=escape).pairs:
                arguments[name] = "" if word is None else expand(word, arguments)
        else:
            step_or_none = _instruction(raw, escape=escape)
            if step_or_none is not None:
                steps.append(step_or_none)
    if image is None:
        raise DockerfileError("there is no FROM instruction", line=1)
    return Definition(image, tuple(steps))


def _split(text: str) -> tuple[str, list[_Raw]]:
    lines = text.replace("\r\n", "\n").split("\n")
    escape = _escape(lines)
    raws: list[_Raw] = []
    index = 0
    while index < len(lines):
        first = lines[index].strip()
        if not first or first.startswith("#"):
            index += 1
            continue
        number = index + 1
        joined, index = _joined(lines, index, escape=escape)
        keyword, rest = _keyword(joined)
        bodies: list[tuple[str, str]] = []
        if keyword == "RUN":
            for opening in _openings(rest, escape=escape):
                body, index = _here_document(lines, index, opening, number=number)
                bodies.append((opening.string, body))
        raws.append(_Raw(number, keyword, rest, tuple(bodies)))
    return escape, raws


def _escape(lines: list[str]) -> str:
    for line in lines:
        match = _DIRECTIVE.fullmatch(line.strip())
        if match is None:
            break
        if match["name"].lower() == "escape":
            if match["value"] not in ("\\", "`"):
                raise DockerfileError(f"the escape character must be \\ or `, not {match['value']!r}", line=1)
            return match["value"]
    return "\\"


def _joined(lines: list[str], index: int, *, escape: str) -> tuple[str, int]:
    """Joins continued lines; comments and empty lines between them vanish, as in Docker."""
    parts: list[str] = []
    started = False
    while index < len(lines):
        line = lines[index]
        stripped = line.strip()
        if started and (not stripped or stripped.startswith("#")):
            index += 1
            continue
        started = True
        index += 1
        tail = line.rstrip()
        if not tail.endswith(escape):
            parts.append(line)
            break
        parts.append(tail[:-1])
    return "".join(parts), index


def _keyword(joined: str) -> tuple[str, str]:
    pieces = joined.strip().split(None, 1)
    return pieces[0].upper(), pieces[1].strip() if len(pieces) > 1 else ""


def _openings(rest: str, *, escape: str) -> list[re.Match[str]]:
    found = (_HERE_DOCUMENT.fullmatch(word.text) for word in words(rest, escape=escape))
    return [match for match in found if match is not None]


def _here_document(lines: list[str], index: int, opening: re.Match[str], *, number: int) -> tuple[str, int]:
    body: list[str] = []
    while index < len(lines):
        line = lines[index]
        index += 1
        if (line.lstrip("\t") if opening["dash"] else line) == opening["name"]:
            return "".join(f"{part}\n" for part in body), index
        body.append(line)
    raise DockerfileError(f"the here-document {opening['name']} has no end", line=number)


def _instruction(raw: _Raw, *, escape: str) -> Instruction | None:
    match raw.keyword:
        case "RUN":
            return _run(raw, escape=escape)
        case "ENV":
            return Env(raw.line, tuple(_env_pairs(raw, escape=escape)))
        case "ARG":
            return _arg(raw, escape=escape)
        case "WORKDIR":
            return Workdir(raw.line, Word(_required(raw), escape))
        case "USER":
            return User(raw.line, Word(_required(raw), escape))
        case "SHELL":
            argv = _exec_form(_required(raw))
            if not argv:
                raise DockerfileError(
                    'SHELL must be a JSON list of strings, such as ["/bin/bash", "-c"]', line=raw.line
                )
            return Shell(raw.line, argv)
        case "ENTRYPOINT":
            argv = _exec_form(_required(raw))
            return Entrypoint(raw.line, (raw.rest,) if argv is None else argv)
        case "LABEL" | "CMD" | "EXPOSE":
            _required(raw)  # without effect on the files of a snapshot or on how its sandboxes run
            return None
        case "COPY" | "ADD":
            raise DockerfileError(f"{raw.keyword} {_CONTEXT_REASON}", line=raw.line)
        case _:
            raise DockerfileError(
                f"the instruction {raw.keyword} is not supported by the local platform", line=raw.line
            )


def _required(raw: _Raw) -> str:
    if not raw.rest:
        raise DockerfileError(f"{raw.keyword} needs an argument", line=raw.line)
    return raw.rest


def _exec_form(rest: str) -> tuple[str, ...] | None:
    if not rest.startswith("["):
        return None
    try:
        items = json.loads(rest)
    except ValueError:
        return None
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return None
    return tuple(items)


def _from(raw: _Raw, arguments: Mapping[str, str], *, escape: str) -> From:
    parts = [part for part in _required(raw).split() if not part.startswith("--platform=")]
    if parts and parts[0].startswith("--"):
        raise DockerfileError(f"FROM {parts[0]} is not supported by the local platform", line=raw.line)
    if len(parts) not in (1, 3) or (len(parts) == 3 and parts[1].upper() != "AS"):
        raise DockerfileError("FROM must be `FROM image` or `FROM image AS name`", line=raw.line)
    image = expand(Word(parts[0], escape), arguments)
    if not image:
        raise DockerfileError(f"FROM {parts[0]}: the image is empty", line=raw.line)
    return From(raw.line, image)


def _run(raw: _Raw, *, escape: str) -> Run:
    rest = _required(raw)
    network = True
    while rest.startswith("--"):
        flag, _, rest = rest.partition(" ")
        rest = rest.strip()
        if flag in ("--network=none", "--network=default"):
            network = flag == "--network=default"
        else:
            raise DockerfileError(f"RUN {flag} is not supported by the local platform", line=raw.line)
    if not rest:
        raise DockerfileError("RUN needs a command", line=raw.line)
    argv = _exec_form(rest)
    if argv is not None:
        if not argv:
            raise DockerfileError("RUN needs a command", line=raw.line)
        return Run(raw.line, rest, argv=argv, network=network)
    if len(raw.here_documents) == 1 and raw.here_documents[0][0] == rest:
        opening, body = raw.here_documents[0]
        stripped = re.sub(r"^\t+", "", body, flags=re.MULTILINE) if "<<-" in opening else body
        return Run(raw.line, rest, script=stripped, network=network)
    text = rest
    for opening, body in raw.here_documents:
        match = _HERE_DOCUMENT.fullmatch(opening)
        name = match["name"] if match is not None else ""
        text += f"\n{body}{name}"
    return Run(raw.line, text, network=network)


def _env_pairs(raw: _Raw, *, escape: str) -> list[tuple[str, Word]]:
    rest = _required(raw)
    found = words(rest, escape=escape)
    if "=" not in found[0].text:
        name, _, value = rest.partition(" ")
        if not value.strip():
            raise DockerfileError(f"ENV {name} needs a value", line=raw.line)
        return [(_name(name, line=raw.line), Word(value.strip(), escape))]
    pairs: list[tuple[str, Word]] = []
    for word in found:
        name, equals, value = word.text.partition("=")
        if not equals:
            raise DockerfileError(f"ENV: {word.text!r} must be NAME=value; quote values with spaces", line=raw.line)
        pairs.append((_name(name, line=raw.line), Word(value, escape)))
    return pairs


def _arg(raw: _Raw, *, escape: str) -> Arg:
    pairs: list[tuple[str, Word | None]] = []
    for word in words(_required(raw), escape=escape):
        name, equals, value = word.text.partition("=")
        pairs.append((_name(name, line=raw.line), Word(value, escape) if equals else None))
    return Arg(raw.line, tuple(pairs))


def _name(text: str, *, line: int) -> str:
    if not _ENV_NAME.fullmatch(text):
        raise DockerfileError(f"{text!r} is not the name of a variable", line=line)
    return text
