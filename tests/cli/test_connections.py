"""Databases on the command line."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from tests.cli.conftest import Run
from tests.sandbox.database_fakes import SPEAKERS, fake_server

SHOW = "import os\nprint(os.environ['MONGODB_URI'], os.environ.get('CONNECTION_STRING'))\n"


async def test_addresses_come_from_the_environment_and_reach_the_program(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_text(SHOW)
    async with fake_server(SPEAKERS["mongodb"]) as server:
        uri = f"mongodb://localhost:{server.port}/shop"
        words = ("--profile", "python", "--connection", "mongodb=env:SHOP", "--connection", "sqlite=env:FILE")
        done = await run("validate", path, *words, environment={"SHOP": uri, "FILE": "shop.db"})
    assert done.code == 0, done.errors
    # Of the preflight, which comes first, the program's reader sees nothing.
    assert done.output == f"{uri} Data Source=shop.db\n"
    assert "▸ preflight" in done.errors


async def test_a_database_that_is_down_has_an_exit_code_of_its_own(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_text(SHOW)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        environment = {"SHOP": f"mongodb://me:geheim@localhost:{port}"}
        words = ("--profile", "python", "--connection", "mongodb=env:SHOP", "--json")
        done = await run("validate", path, *words, environment=environment)
        assert done.code == 20, done.errors
        verdict = json.loads(done.output)
        assert verdict["outcome"] == "database_unreachable"
        assert f"MongoDB database at localhost:{port}" in verdict["message"]
        assert [phase["name"] for phase in verdict["phases"]] == ["preflight"]
        assert "geheim" not in done.output + done.errors
        sides = ("--source-profile", "python", "--target-profile", "python", "--source-connection", "mongodb=env:SHOP")
        done = await run("compare", path, path, *sides, environment=environment)
    assert done.code == 33, done.output
    assert "database_unreachable" in done.output
    assert "geheim" not in done.output + done.errors


async def test_wrong_words_end_with_wrong_usage(alone: Run, tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_text(SHOW)
    for word, text in (
        ("mongodb=mongodb://me:geheim@a", "--connection: an address is not written down here"),
        ("mongodb://me:geheim@a", "--connection: an address is not written down here"),
        ("mongodb=env:NOT_SET", "--connection: the environment has no variable NOT_SET"),
        ("mongodb=env:SHOP", "connections[0].url: is a mongodb+srv:// URI"),
    ):
        environment = {"SHOP": "mongodb+srv://me:geheim@a"}
        done = await alone("validate", path, "--profile", "python", "--connection", word, environment=environment)
        assert done.code == 64
        assert text in done.errors
        assert "geheim" not in done.errors


async def test_help_says_how_a_database_is_named(alone: Run) -> None:
    done = await alone("validate", "--help")
    assert "--connection DATABASE" in done.output
    assert "KIND=env:VARIABLE" in done.output
