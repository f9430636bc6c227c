"""The block ``DatabaseConnection``: a database of programs, its address stored as a secret."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from prefect.blocks.core import Block
from pydantic import Field, HttpUrl, SecretStr, ValidationError

from blocks.logos import logo
from sandbox import databases
from sandbox.errors import ConfigurationError

Kind = Literal["postgresql", "sqlserver", "sqlite", "mongodb", "neo4j"]

_SECRET_FIELDS: Final = frozenset({"url", "password"})


class DatabaseConnection(Block):
    """A database that programs in a sandbox may talk to: one text that says it all, or parts.

    Requests, profiles and the command line name it by the name of its document. The program finds it in its
    environment: ``CONNECTION_STRING``, ``MONGODB_URI``, or ``NEO4J_URI``, ``NEO4J_USERNAME`` and ``NEO4J_PASSWORD``.
    The fields are checked when the document is used, with an error that names the wrong one.

    Attributes:
        kind: Which product.
        url: Connection string or URL; user and password are in it or in their own fields.
        host: Host name or address, instead of ``url``.
        port: TCP port; 0 takes the product's own.
        database: Name of the database; for SQLite the path of the file in the workspace.
        username: Who logs in.
        password: With which password.
        options: Further keys of the connection string or parameters of the URI.
        variable: Environment variable instead of the usual one, for a second database of a program.

    Example:
        Load a stored database and see where it listens:

        ```python
        from blocks import DatabaseConnection

        orders = DatabaseConnection.load("BLOCK_NAME")
        print(*orders.connection().endpoints)
        ```
    """

    _block_type_name: ClassVar[str] = "Database Connection"
    _block_type_slug: ClassVar[str] = "database-connection"
    _logo_url: ClassVar[HttpUrl | None] = logo("sqlalchemy")
    _documentation_url: ClassVar[HttpUrl] = HttpUrl("https://docs.prefect.io/v3/concepts/blocks")
    _description: ClassVar[str] = "A database that programs in a sandbox may talk to, its address stored as a secret."

    kind: Kind = Field(default="postgresql", title="Kind", description="Which product it is.")
    url: SecretStr = Field(
        default=SecretStr(""),
        title="Address",
        description="ADO.NET connection string or postgresql:// URL, path of an SQLite file in the workspace, "
        "mongodb:// URI, bolt:// or neo4j:// URI. Empty where the parts below say it.",
    )
    host: str = Field(
        default="",
        title="Host",
        description="Host name or address, instead of the address; localhost is the machine of the local platform.",
    )
    port: int = Field(default=0, title="Port", description="TCP port; 0 takes the product's own.")
    database: str = Field(
        default="", title="Database", description="Name of the database; for SQLite the path of the file."
    )
    username: str = Field(default="", title="User name", description="Who logs in.")
    password: SecretStr = Field(default=SecretStr(""), title="Password", description="With which password.")
    options: dict[str, str] = Field(
        default_factory=dict,
        title="Options",
        description="Further keys of the connection string or parameters of the URI; no secrets.",
    )
    variable: str = Field(
        default="",
        title="Variable",
        description="Environment variable instead of CONNECTION_STRING, MONGODB_URI or NEO4J_URI, for a second one.",
    )

    def connection(self) -> databases.DatabaseConnection:
        """Returns the checked connection.

        Raises:
            ConfigurationError: A field is wrong; the text names every wrong one and shows no value.
        """
        own = set(type(self).model_fields) - set(Block.model_fields)
        given: dict[str, Any] = {name: getattr(self, name) for name in own}
        document = {
            name: value
            for name, value in given.items()
            if (value.get_secret_value() if name in _SECRET_FIELDS else value)
        }
        try:
            return databases.DatabaseConnection.model_validate(document)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)
            wrong = "; ".join(
                " ".join((*map(str, item["loc"]), item["msg"].removeprefix("Value error, "))) for item in found
            )
            name = self._block_document_name or "document"
            raise ConfigurationError(
                f"the block {self._block_type_slug}/{name} is wrong: {wrong}", remedy="Edit it in Prefect."
            ) from None


async def stored_connection(name: str) -> databases.DatabaseConnection:
    """Returns the database stored under a name.

    Raises:
        ConfigurationError: There is none, or a field of it is wrong.
    """
    try:
        block: DatabaseConnection = await DatabaseConnection.aload(name)
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, item["loc"])) for item in error.errors(include_input=False))
        raise ConfigurationError(
            f"the block {DatabaseConnection._block_type_slug}/{name} cannot be read: {fields}",
            remedy="Edit it in Prefect, or run `uom-sandbox blocks register` after an upgrade.",
        ) from None
    except (ValueError, RuntimeError) as error:
        raise ConfigurationError(
            f"the block {DatabaseConnection._block_type_slug}/{name} cannot be read: {error}",
            remedy="`uom-sandbox blocks register` makes the block type known; then make the document in Prefect.",
        ) from None
    return block.connection()
