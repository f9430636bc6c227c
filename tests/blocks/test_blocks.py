"""The blocks on a real Prefect server."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from prefect.blocks.core import Block
from prefect.blocks.system import Secret
from prefect.client.orchestration import get_client
from prefect.testing.standard_test_suites.blocks import BlockStandardTestSuite
from pydantic import SecretStr

from blocks import DatabaseConnection, DaytonaCredentials, SandboxProfile, register_blocks
from blocks.database import stored_connection
from blocks.profile import stored_profile
from flows import prefect_api
from sandbox import databases
from sandbox.connection import Credentials
from sandbox.errors import ConfigurationError
from sandbox.profiles import Profile, builtin_profile, builtin_profile_names, load_profile_file

LOGO = re.compile(r'"logo_url": *"([^"]+)"')


@pytest_asyncio.fixture
async def _api(prefect_server: str) -> AsyncIterator[None]:
    async with prefect_api():
        yield


@pytest.mark.parametrize("block", [DatabaseConnection, DaytonaCredentials, SandboxProfile])
class TestStandards(BlockStandardTestSuite):
    """Prefect's own suite for blocks of integrations."""

    @pytest.fixture
    def block(self, block: type[Block]) -> type[Block]:
        return block

    def test_has_a_valid_image(self, block: type[Block]) -> None:
        """Not fetched here, where there may be no network: it is one of those that Prefect shows for its own blocks."""
        listed = Path(str(files("prefect.server"))) / "collection_blocks_data.json"
        assert str(block._logo_url) in {*LOGO.findall(listed.read_text()), str(Secret._logo_url)}

    def test_every_field_explains_itself(self, block: type[Block]) -> None:
        for name, field in block.model_fields.items():
            assert field.title, name
            assert not field.is_required(), f"{name}: a new required field makes stored documents unreadable"

    def test_names_are_pinned(self, block: type[Block]) -> None:
        assert block.get_block_type_slug() == {
            "DatabaseConnection": "database-connection",
            "DaytonaCredentials": "daytona-credentials",
            "SandboxProfile": "sandbox-profile",
        }.get(block.__name__)
        assert "_block_type_name" in vars(block)


@pytest.mark.parametrize("name", builtin_profile_names())
def test_a_profile_survives_the_way_through_a_block(name: str) -> None:
    profile = builtin_profile(name)
    assert SandboxProfile.from_profile(profile).profile(name) == profile


def test_every_field_of_a_profile_has_its_place() -> None:
    assert set(Profile.model_fields) - {"name"} == set(SandboxProfile.model_fields) - {"built_in"}


def test_a_profile_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="name"):
        SandboxProfile.from_profile(builtin_profile("python")).profile()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"image": ""}, "image"),
        ({"resources": {"memory": "much"}}, r"resources\.memory"),
        ({"isolation": "none"}, "isolation"),
        ({"network": {"mode": "allow"}}, "network"),
        ({"default_framework": "rails"}, "default_framework"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, object], field: str) -> None:
    block = SandboxProfile.from_profile(builtin_profile("python")).model_copy(update=changes)
    with pytest.raises(ConfigurationError, match=field):
        block.profile("python")


@pytest.mark.usefixtures("_api")
async def test_registration_is_repeatable_and_keeps_what_a_person_edited() -> None:
    first = {done.name: done.action for done in await register_blocks()}
    assert first["daytona-credentials"] == first["sandbox-profile"] == "registered"
    assert first["database-connection"] == "registered"
    assert first["sandbox-profile/python"] == "created"
    second = {done.name: done.action for done in await register_blocks()}
    assert second["sandbox-profile/python"] == "unchanged"
    assert await stored_profile("python") == builtin_profile("python")

    edited: SandboxProfile = await SandboxProfile.aload("python")
    edited.parallel = 7
    await edited.asave("python", overwrite=True)
    third = {done.name: done.action for done in await register_blocks()}
    assert third["sandbox-profile/python"] == "kept"
    stored = await stored_profile("python")
    assert stored is not None
    assert stored.parallel == 7

    fourth = {done.name: done.action for done in await register_blocks(overwrite=True)}
    assert fourth["sandbox-profile/python"] == "updated"
    assert await stored_profile("python") == builtin_profile("python")
    for name in builtin_profile_names():
        await SandboxProfile.adelete(name)


@pytest.mark.usefixtures("_api")
async def test_an_unedited_document_follows_an_upgrade() -> None:
    older = builtin_profile("python").model_copy(update={"parallel": 1})
    await SandboxProfile.from_profile(older, built_in=True).asave("python", overwrite=True)
    done = {item.name: item.action for item in await register_blocks()}
    assert done["sandbox-profile/python"] == "updated"
    assert await stored_profile("python") == builtin_profile("python")
    for name in builtin_profile_names():
        await SandboxProfile.adelete(name)


@pytest.mark.usefixtures("_api")
async def test_a_profile_that_is_not_stored_is_none() -> None:
    assert await stored_profile("nobody-stored-this") is None


@pytest.mark.usefixtures("_api")
async def test_a_key_is_stored_as_a_secret() -> None:
    block = DaytonaCredentials(api_key=SecretStr("dtn_hidden"), api_url="http://127.0.0.1:1/api/", target="eu")
    assert "dtn_hidden" not in repr(block)
    await block.asave("keyed", overwrite=True)
    loaded: DaytonaCredentials = await DaytonaCredentials.aload("keyed")
    assert loaded.credentials() == Credentials(
        api_key=SecretStr("dtn_hidden"), api_url="http://127.0.0.1:1/api", target="eu"
    )
    async with get_client() as api:
        document = await api.read_block_document_by_name("keyed", "daytona-credentials", include_secrets=False)
    assert "dtn_hidden" not in document.model_dump_json()
    await DaytonaCredentials.adelete("keyed")


@pytest.mark.usefixtures("_api")
async def test_prefect_finds_the_blocks_by_itself(prefect_server: str, tmp_path: Path) -> None:
    (found,) = (each for each in entry_points(group="prefect.collections") if each.name == "uom_sandbox")
    assert found.load().SandboxProfile is SandboxProfile
    await DatabaseConnection(kind="mongodb", host="documents").asave("found", overwrite=True)
    code = (
        "from prefect.blocks.core import Block; print(Block.load('database-connection/found').connection().endpoints)"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PREFECT_API_URL": prefect_server},
        cwd=tmp_path,
    )
    output, errors = await process.communicate()
    await DatabaseConnection.adelete("found")
    assert process.returncode == 0, errors.decode()
    assert "documents" in output.decode()


def test_an_empty_key_is_an_error_also_where_the_environment_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYTONA_API_KEY", "from the environment")
    with pytest.raises(ConfigurationError, match="api_key"):
        DaytonaCredentials().credentials()


async def test_the_block_lends_the_sdk_client(credentials: Credentials) -> None:
    block = DaytonaCredentials(api_key=credentials.api_key, api_url=credentials.api_url)
    async with block.get_client() as daytona:
        assert (await daytona.snapshot.list()).items is not None


def test_a_profile_file_and_a_block_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    profile = builtin_profile("python").model_copy(update={"name": "mine"})
    path.write_text(profile.model_dump_json())
    assert SandboxProfile.from_profile(load_profile_file(path)).profile("mine") == profile


@pytest.mark.usefixtures("_api")
async def test_a_database_is_stored_with_its_secrets_hidden_and_loaded_by_its_name() -> None:
    block = DatabaseConnection(kind="neo4j", host="graph", username="neo4j", password=SecretStr("gehe;im"))
    assert "gehe;im" not in repr(block)
    await block.asave("orders")
    await DatabaseConnection(kind="mongodb", url=SecretStr("mongodb://me:gehe%3Bim@a,b/shop")).asave("documents")
    try:
        found = await stored_connection("orders")
        assert found.variables() == {
            "NEO4J_URI": "bolt://graph:7687",
            "NEO4J_USERNAME": "neo4j",
            "NEO4J_PASSWORD": "gehe;im",
        }
        assert len((await stored_connection("documents")).endpoints) == 2
        async with get_client() as api:
            stored = await api.read_block_document_by_name("orders", "database-connection", include_secrets=False)
        assert "gehe;im" not in stored.model_dump_json()
    finally:
        await DatabaseConnection.adelete("orders")
        await DatabaseConnection.adelete("documents")
    with pytest.raises(ConfigurationError, match=r"database-connection/orders cannot be read.*blocks register"):
        await stored_connection("orders")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"url": SecretStr("gehe;im")}, "url is no connection string"),
        ({"kind": "mongodb", "url": SecretStr("mongodb://u:gehe/im@a")}, "not percent-encoded"),
        ({}, "`url` or `host` is needed"),
        ({"host": "a", "port": 70_000}, "port "),
        ({"host": "a", "url": SecretStr("Host=b")}, "`host` and `url` exclude each other"),
        ({"host": "a", "variable": "1"}, "variable is not a name"),
    ],
)
def test_a_wrong_field_of_a_database_is_named_and_not_shown(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        DatabaseConnection(**fields).connection()
    assert text in str(caught.value)
    assert "gehe" not in str(caught.value)


def test_every_field_of_a_database_has_its_place() -> None:
    assert set(DatabaseConnection.model_fields) >= set(databases.DatabaseConnection.model_fields)


def test_a_field_with_its_default_is_no_edit_of_a_profile() -> None:
    profile = builtin_profile("python")
    block = SandboxProfile.from_profile(profile, built_in=True)
    assert block.digest() == SandboxProfile.from_profile(profile.model_copy(update={"connections": ()})).digest()
    assert block.digest() != SandboxProfile.from_profile(profile.model_copy(update={"connections": ("a",)})).digest()
    assert not block.edited
