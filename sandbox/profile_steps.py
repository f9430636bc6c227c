"""Set-up steps that are kept as files beside their profile, so that scripts and sources stay what they are.

In a profile file, a set-up step is Dockerfile text, or a table that names a file next to the profile:

``{ file = "java/find-jdk.sh" }`` runs the script; ``network = "none"`` runs it without a network.
``{ file = "java/java-run", to = "/opt/uom/bin/java-run", mode = "755" }`` stores the file in the snapshot.

Both become one ``RUN`` step with a here-document, whose opening word is made from the file's name. What comes out of
here is an ordinary profile: the snapshot's definition holds everything it is made from.

A framework's template file may be kept beside the profile in the same way: ``"Driver.cs" = { file = "Driver.cs" }``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from sandbox.errors import ConfigurationError

Read = Callable[[str], str]
"""Returns the text of a file, given its path relative to the profile; raises ``OSError`` or ``ValueError``."""

_KEYS: Final = frozenset({"file", "to", "mode", "network"})
_TARGET: Final = re.compile(r"/[\w./-]+")
_MODE: Final = re.compile(r"[0-7]{3}")
_END_OF_FILE: Final = "EOF"


def with_step_files(data: Mapping[str, Any], *, read: Read, origin: str) -> dict[str, Any]:
    """Returns the document of a profile with text in place of the files that its set-up steps name.

    Args:
        data: The document; what has not the form of a profile is left for the model to refuse.
        read: Reads the files.
        origin: Where the document came from, for error texts.

    Raises:
        ConfigurationError: A step's table is wrong, or its file cannot be read.
    """
    result = dict(data)
    if "setup" in data:
        result["setup"] = _expanded(data["setup"], field="setup", read=read, origin=origin)
    frameworks = data.get("frameworks")
    if isinstance(frameworks, Mapping):
        result["frameworks"] = {
            name: _framework(framework, name=name, read=read, origin=origin)
            if isinstance(framework, Mapping)
            else framework
            for name, framework in frameworks.items()
        }
    return result


def _framework(framework: Mapping[str, Any], *, name: str, read: Read, origin: str) -> dict[str, Any]:
    result = dict(framework)
    if "setup" in framework:
        result["setup"] = _expanded(framework["setup"], field=f"frameworks.{name}.setup", read=read, origin=origin)
    files = framework.get("files")
    if isinstance(files, Mapping):
        result["files"] = {}
        for path, content in files.items():
            try:
                result["files"][path] = _named_file(content, read) if isinstance(content, Mapping) else content
            except (OSError, ValueError) as error:
                raise ConfigurationError(
                    f"a template file of the profile from {origin} is wrong: {error}",
                    field=f"frameworks.{name}.files.{path}",
                ) from None
    return result


def _named_file(content: Mapping[str, Any], read: Read) -> str:
    if content.keys() != {"file"} or not isinstance(content["file"], str):
        raise ValueError("it is text, or a table with `file`")
    return read(_beside(content["file"]))


def _beside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"the file {name!r} does not lie beside the profile")
    return name


def _expanded(steps: object, *, field: str, read: Read, origin: str) -> object:
    if not isinstance(steps, list):
        return steps
    texts = []
    for number, step in enumerate(steps):
        if isinstance(step, Mapping):
            try:
                texts.append(_text(step, read))
            except (OSError, ValueError) as error:
                raise ConfigurationError(
                    f"a set-up step of the profile from {origin} is wrong: {error}", field=f"{field}.{number}"
                ) from None
        else:
            texts.append(step)
    return texts


def _text(step: Mapping[str, Any], read: Read) -> str:
    unknown = sorted(step.keys() - _KEYS)
    if unknown or not all(isinstance(value, str) for value in step.values()) or "file" not in step:
        raise ValueError(f"a step has `file`, `to`, `mode` and `network`, all text{_named(unknown)}")
    path = PurePosixPath(_beside(step["file"]))
    if step.get("network", "none") != "none":
        raise ValueError("`network` is `none` or left out")
    network = "--network=none " if "network" in step else ""
    content = read(step["file"]).removesuffix("\n") + "\n"
    name = re.sub(r"\W", "_", path.stem if path.suffix == ".sh" else path.name).upper()
    if "to" in step:
        name = f"ADD_{name}"
        content = _stored(content, target=step["to"], mode=step.get("mode", "644"))
    elif "mode" in step:
        raise ValueError("`mode` belongs to `to`")
    if name in content.split("\n"):
        raise ValueError(f"the file {step['file']!r} has a line {name}, which would end it")
    return f"{network}<<'{name}'\n{content}{name}"


def _stored(content: str, *, target: str, mode: str) -> str:
    if not _TARGET.fullmatch(target) or ".." in target:
        raise ValueError(f"{target!r} is no absolute path of letters, digits and . _ - /")
    if not _MODE.fullmatch(mode):
        raise ValueError(f"{mode!r} is no mode such as 755")
    if _END_OF_FILE in content.split("\n"):
        raise ValueError(f"the content of {target} has a line {_END_OF_FILE}, which would end it")
    folder = PurePosixPath(target).parent
    return (
        f"set -eu\nmkdir -p {folder}\ncat > {target} <<'{_END_OF_FILE}'\n{content}{_END_OF_FILE}\n"
        f"chmod {mode} {target}\n"
    )


def _named(unknown: list[str]) -> str:
    return f"; not {', '.join(unknown)}" if unknown else ""
