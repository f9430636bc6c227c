"""Set-up steps that are files beside the profile."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import ConfigurationError
from sandbox.local.control.dockerfile import Run, parse
from sandbox.profiles import Profile, load_profile_file

PROFILE = """
name = "own"
type = "own-sandbox"
language = "shell"
image = "debian:13"
default_framework = "plain"
setup = ["echo first", {step}]
[frameworks.plain]
entry_point = "main.sh"
setup = [{{ file = "steps/prove.sh", network = "none" }}]
[[frameworks.plain.phases]]
name = "run"
command = "sh main.sh"
"""


def profile_with(step: str, *, folder: Path) -> Profile:
    (folder / "steps").mkdir()
    (folder / "steps/find-tool.sh").write_text("set -eu\necho 'found it'\n")
    (folder / "steps/prove.sh").write_text("true")
    (folder / "steps/settings.xml").write_text("<a b=\"$HOME\">`x` \\n 'ž'</a>\n")
    (folder / "steps/ends.sh").write_text("echo\nENDS\n")
    (folder / "steps/eof.txt").write_text("a\nEOF\nb\n")
    path = folder / "own.toml"
    path.write_text(PROFILE.format(step=step))
    return load_profile_file(path)


def steps(profile: Profile) -> list[Run]:
    return [step for step in parse(profile.dockerfile({})).instructions if isinstance(step, Run)]


def test_a_script_becomes_a_step_named_after_its_file(tmp_path: Path) -> None:
    first, script, proof = steps(profile_with('{ file = "steps/find-tool.sh" }', folder=tmp_path))
    assert first.text == "echo first"
    assert script.text.endswith("<<'FIND_TOOL'")
    assert script.script == "set -eu\necho 'found it'\n"
    assert script.network
    assert not proof.network
    assert proof.script == "true\n"


def test_a_stored_file_arrives_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "opt/settings.xml"
    step = f'{{ file = "steps/settings.xml", to = "{target}", mode = "755" }}'
    _, stored, _ = steps(profile_with(step, folder=tmp_path))
    assert stored.text.endswith("<<'ADD_SETTINGS_XML'")
    assert stored.script is not None
    subprocess.run(["sh", "-c", stored.script], check=True)
    assert target.read_bytes() == (tmp_path / "steps/settings.xml").read_bytes()
    assert target.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ('{ file = "steps/none.sh" }', "No such file"),
        ('{ file = "../own.toml" }', "does not lie beside the profile"),
        ('{ file = "/etc/passwd" }', "does not lie beside the profile"),
        ('{ file = "steps/find-tool.sh", network = "open" }', "`network` is `none` or left out"),
        ('{ file = "steps/find-tool.sh", mode = "755" }', "`mode` belongs to `to`"),
        ('{ file = "steps/find-tool.sh", user = "root" }', "not user"),
        ("{ file = 7 }", "all text"),
        ('{ to = "/opt/x" }', "a step has `file`"),
        ('{ file = "steps/settings.xml", to = "opt/x" }', "no absolute path"),
        ('{ file = "steps/settings.xml", to = "/opt/$(id)" }', "no absolute path"),
        ('{ file = "steps/settings.xml", to = "/opt/../etc/x" }', "no absolute path"),
        ('{ file = "steps/settings.xml", to = "/opt/x", mode = "u+x" }', "no mode such as 755"),
        ('{ file = "steps/ends.sh" }', "has a line ENDS"),
        ('{ file = "steps/eof.txt", to = "/opt/x" }', "has a line EOF"),
    ],
)
def test_a_wrong_step_is_refused_with_its_place(step: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        profile_with(step, folder=tmp_path)
    assert told in str(refused.value)
    assert refused.value.field == "setup.1"


def test_what_a_block_stores_needs_no_files(tmp_path: Path) -> None:
    profile = profile_with('{ file = "steps/find-tool.sh" }', folder=tmp_path)
    stored: dict[str, Any] = profile.model_dump(mode="json")
    assert Profile.model_validate(stored).dockerfile({}) == profile.dockerfile({})


WITH_FILES = """
[frameworks.plain.files]
"Driver.cs" = {content}
"""


def profile_with_template_file(content: str, *, folder: Path) -> Profile:
    (folder / "driver.txt").write_text("class Driver;\n")
    (folder / "steps").mkdir()
    (folder / "steps/prove.sh").write_text("true")
    path = folder / "own.toml"
    path.write_text(PROFILE.format(step='"true"') + WITH_FILES.format(content=content))
    return load_profile_file(path)


def test_a_template_file_may_lie_beside_the_profile(tmp_path: Path) -> None:
    profile = profile_with_template_file('{ file = "driver.txt" }', folder=tmp_path)
    assert profile.frameworks["plain"].files == {"Driver.cs": "class Driver;\n"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{ file = "none.txt" }', "No such file"),
        ('{ file = "../driver.txt" }', "does not lie beside the profile"),
        ('{ file = "driver.txt", mode = "755" }', "a table with `file`"),
        ("{ file = 7 }", "a table with `file`"),
    ],
)
def test_a_wrong_template_file_is_refused_with_its_place(content: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        profile_with_template_file(content, folder=tmp_path)
    assert told in str(refused.value)
    assert refused.value.field == "frameworks.plain.files.Driver.cs"
