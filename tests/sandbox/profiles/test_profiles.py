"""Profiles as data: what is accepted, and how a wrong field is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import ConfigurationError
from sandbox.local.control.dockerfile import Env, parse
from sandbox.local.control.variables import expand
from sandbox.profiles import builtin_profile, load_profile_file, parse_profile

SMALLEST: dict[str, Any] = {
    "name": "shell",
    "type": "shell-sandbox",
    "language": "shell",
    "image": "debian:12-slim",
    "default_framework": "plain",
    "frameworks": {"plain": {"entry_point": "main.sh", "phases": [{"name": "run", "command": "sh main.sh"}]}},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The smallest profile with one field set; ``path`` has dots."""
    data: dict[str, Any] = json.loads(json.dumps(SMALLEST))
    *parents, last = path.split(".")
    target: Any = data
    for part in parents:
        target = target[int(part)] if part.isdigit() else target.setdefault(part, {})
    target[last] = value
    return data


def test_the_smallest_profile_has_sensible_rest() -> None:
    profile = parse_profile(SMALLEST, origin="a test")
    assert profile.snapshot_name == "validation-snapshot-shell-sandbox"
    assert profile.network.mode == "none"
    assert profile.dockerfile({}) == "FROM debian:12-slim\n"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "Upper Case"),
        ("type", ""),
        ("language", "c++"),
        ("image", ""),
        ("unknown", 1),
        ("auto_stop_minutes", -1),
        ("parallel", 0),
        ("resources.memory", 0),
        ("resources.gpu", 1),
        ("network.mode", "closed"),
        ("environment", {"A B": "x"}),
        ("on_definition_change", "ignore"),
        ("frameworks.plain.entry_point", "../main.sh"),
        ("frameworks.plain.files", {"/etc/passwd": ""}),
        ("frameworks.plain.phases", []),
        ("frameworks.plain.phases.0.name", "Run it"),
        ("frameworks.plain.phases.0.timeout_seconds", 0),
        ("frameworks.plain.phases.0.failure", "passed"),
        ("frameworks.plain.result", "maybe"),
    ],
)
def test_a_wrong_field_is_named_with_where_the_profile_came_from(path: str, value: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_profile(changed(path, value), origin="shell.toml")
    text = str(caught.value)
    assert text.startswith("the profile from shell.toml is wrong: ")
    assert f" {path}" in text


def test_every_wrong_field_is_named_at_once() -> None:
    data = changed("resources.memory", 0) | {"name": "?", "language": "?"}
    with pytest.raises(ConfigurationError, match=r"name: .*; language: .*; resources\.memory: "):
        parse_profile(data, origin="a test")


def test_a_default_framework_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"default_framework 'other' is none of frameworks: plain"):
        parse_profile(changed("default_framework", "other"), origin="a test")


@pytest.mark.parametrize(
    ("network", "text"),
    [
        ({"mode": "allow"}, "needs either"),
        ({"mode": "allow", "cidrs": ["10.0.0.0/8"], "domains": ["example.org"]}, "needs either"),
        ({"mode": "none", "domains": ["example.org"]}, "belong to mode `allow`"),
    ],
)
def test_lists_of_hosts_must_fit_the_mode(network: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        parse_profile(changed("network", network), origin="a test")


def test_two_phases_of_one_name_are_refused() -> None:
    phases = [{"name": "run", "command": "true"}, {"name": "run", "command": "false"}]
    with pytest.raises(ConfigurationError, match="two phases have the same name"):
        parse_profile(changed("frameworks.plain.phases", phases), origin="a test")


def test_an_unknown_framework_is_told_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigurationError, match=r"framework: profile 'dotnet' has no framework 'nope'.*dapper, efcore"
    ):
        builtin_profile("dotnet").framework("nope")
    assert builtin_profile("dotnet").framework(None)[0] == "plain"


def test_an_unknown_profile_is_told_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"profile: no profile 'cobol'.*Built in: dotnet, java, python"):
        builtin_profile("cobol")


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_users_own_file_gives_the_same_profile(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"shell{suffix}"
    toml = """
name = "shell"
type = "shell-sandbox"
language = "shell"
image = "debian:12-slim"
default_framework = "plain"
[frameworks.plain]
entry_point = "main.sh"
phases = [{ name = "run", command = "sh main.sh" }]
"""
    path.write_text(toml if suffix == ".toml" else json.dumps(SMALLEST))
    assert load_profile_file(path) == parse_profile(SMALLEST, origin="a test")


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.toml", "name = ", "cannot read the profile file"),
        ("a.json", "{", "cannot read the profile file"),
        ("a.json", "[]", "must hold a table"),
        ("a.toml", "\xff", "cannot read the profile file"),
    ],
)
def test_a_file_that_is_no_profile_is_told_with_its_path(tmp_path: Path, name: str, content: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=text) as caught:
        load_profile_file(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_missing_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read the profile file .*/none\.toml"):
        load_profile_file(tmp_path / "none.toml")


@pytest.mark.parametrize("value", ["plain", "two words", 'a "quoted" one', "$HOME ${PATH}", "back\\slash", "$(id)", ""])
def test_values_reach_the_snapshot_as_they_are(value: str) -> None:
    data = changed("setup_variables", {"UOM_TEST_VALUE": "unset"})
    text = parse_profile(data, origin="a test").dockerfile({"UOM_TEST_VALUE": value})
    (step,) = (item for item in parse(text).instructions if isinstance(item, Env))
    assert {name: expand(word, {"HOME": "/x", "PATH": "/y"}) for name, word in step.pairs} == {"UOM_TEST_VALUE": value}
