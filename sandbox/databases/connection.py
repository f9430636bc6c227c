"""``DatabaseConnection``: a database that a program may talk to."""

from __future__ import annotations

from typing import Final, Self

from pydantic import Field, PrivateAttr, SecretStr, ValidationInfo, field_validator, model_validator

from sandbox.databases.addresses import Address, Parts, address_of, read_address
from sandbox.databases.endpoints import Endpoint
from sandbox.databases.kinds import CONNECTION_STRING, KINDS, DatabaseKind
from sandbox.frozen_model import Model
from sandbox.request_checks import ENVIRONMENT_NAME, SHELL_NAMES, utf8

DATABASE_KIND: Final = "DATABASE_KIND"
NEO4J_SUFFIX: Final = "_URI"
RESERVED_NAMES: Final = frozenset({"HOME", "TMPDIR", "PATH", "IFS"})


class DatabaseConnection(Model):
    """A database that a program may talk to: one text that says it all, or parts.

    The program finds it in its environment, and nowhere else:

    - relational ones: ``CONNECTION_STRING``, in ADO.NET's form also when a ``postgresql://`` URL was given, and
      ``DATABASE_KIND`` (``postgresql``, ``sqlserver``, ``sqlite``), because a program that is meant for several has no
      other way to choose its provider;
    - ``mongodb``: ``MONGODB_URI``;
    - ``neo4j``: ``NEO4J_URI``, ``NEO4J_USERNAME``, ``NEO4J_PASSWORD``, and ``NEO4J_DATABASE`` when one is named.

    ``localhost`` is the machine of the platform that runs the sandboxes: this one for the local platform.

    Attributes:
        kind: Which product.
        url: Connection string of ADO.NET or ``postgresql://`` URL; path of a file of the workspace (SQLite);
            ``mongodb://`` URI; ``bolt://`` or ``neo4j://`` URI. User and password are in it or beside it.
        host: Host name or address, instead of ``url``.
        port: TCP port; the product's own by default.
        database: Name of the database; for SQLite the path of the file.
        username: Who logs in.
        password: With which password.
        options: Further keys of the connection string or parameters of the URI; for Neo4j ``scheme`` alone.
        variable: Environment variable instead of ``CONNECTION_STRING``, ``MONGODB_URI`` or ``NEO4J_URI``, for a second
            database. ``DATABASE_KIND`` is then called ``<variable>_KIND``. For Neo4j it ends with ``_URI``, and the
            other variables begin like it.
    """

    kind: DatabaseKind
    url: SecretStr | None = None
    host: str | None = Field(default=None, max_length=255)
    port: int | None = Field(default=None, ge=1, le=65_535)
    database: str | None = Field(default=None, max_length=1024)
    username: str | None = Field(default=None, max_length=1024)
    password: SecretStr | None = None
    options: dict[str, str] = Field(default_factory=dict)
    variable: str | None = None
    _address: Address = PrivateAttr()

    @field_validator("url")
    @classmethod
    def _url_is_an_address(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        kind = info.data.get("kind")
        if value is not None and kind is not None:
            if not value.get_secret_value().strip():
                raise ValueError("is empty")
            utf8(value.get_secret_value(), "the text")
            read_address(kind, value.get_secret_value())
        return value

    @field_validator("host", "database", "username")
    @classmethod
    def _printable(cls, value: str | None) -> str | None:
        if value is not None:
            utf8(value, "the text")
            if any(ord(character) < 32 or ord(character) == 127 for character in value):
                raise ValueError("holds a control character")
        return value

    @field_validator("password")
    @classmethod
    def _password_can_be_carried(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            utf8(value.get_secret_value(), "the text")
            if "\0" in value.get_secret_value():
                raise ValueError("holds a NUL byte, which no environment can carry")
        return value

    @field_validator("options")
    @classmethod
    def _options_are_text(cls, values: dict[str, str]) -> dict[str, str]:
        for name, value in values.items():
            for text in (name, value):
                utf8(text, "an option")
                if any(ord(character) < 32 for character in text):
                    raise ValueError("hold a control character")
        return values

    @field_validator("variable")
    @classmethod
    def _variable_is_free(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return value
        if not ENVIRONMENT_NAME.fullmatch(value):
            raise ValueError("is not a name of an environment variable")
        if value in SHELL_NAMES | RESERVED_NAMES or value.startswith("UOM_"):
            raise ValueError(f"{value!r} belongs to the shell or to the run; take another name")
        if info.data.get("kind") is DatabaseKind.NEO4J and (not value.endswith(NEO4J_SUFFIX) or value == NEO4J_SUFFIX):
            raise ValueError(
                f"must end with {NEO4J_SUFFIX} for Neo4j: user and password get the same name with _USERNAME, _PASSWORD"
            )
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        secret = self.password.get_secret_value() if self.password else ""
        if self.url is None:
            parts = Parts(
                host=self.host or "",
                port=self.port,
                database=self.database or "",
                username=self.username or "",
                password=secret,
                options=tuple(self.options.items()),
            )
            self._address = address_of(self.kind, parts)
            return self
        beside = {"host": self.host, "port": self.port, "database": self.database, "options": self.options}
        if self.kind is DatabaseKind.NEO4J:
            del beside["database"]
        for name, value in beside.items():
            if value:
                raise ValueError(f"`{name}` and `url` exclude each other; say it in `url`")
        try:
            self._address = read_address(
                self.kind, self.url.get_secret_value(), username=self.username or "", password=secret
            )
        except ValueError as error:
            raise ValueError(f"`url` {error}") from None
        return self

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where it listens; of several, one that answers is enough. Empty for a file."""
        return self._address.endpoints

    @property
    def tls(self) -> bool:
        """Whether nothing but TLS may be spoken from the first byte on."""
        return self._address.tls

    def variables(self) -> dict[str, str]:
        """Returns the environment variables by which the program finds it, secrets among them."""
        name = self.variable or KINDS[self.kind].variable
        values = {name: self._address.text}
        if self.kind.relational:
            values[DATABASE_KIND if name == CONNECTION_STRING else f"{name}_KIND"] = self.kind.value
        if self.kind is DatabaseKind.NEO4J:
            stem = name.removesuffix(NEO4J_SUFFIX)
            more = {
                f"{stem}_USERNAME": self._address.username,
                f"{stem}_PASSWORD": self._address.password,
                f"{stem}_DATABASE": self.database or "",
            }
            values |= {key: value for key, value in more.items() if value}
        return values

    def hidden(self) -> frozenset[str]:
        """Returns what must not be shown: passwords in every form, and whole texts that hold one."""
        given = self.url.get_secret_value() if self.url and self._address.hidden else ""
        address = self._address
        # A text without a password stays readable: messages about it are of more use so.
        return frozenset(filter(None, (*address.hidden, given if self._holds_secret(given) else "")))

    def _holds_secret(self, text: str) -> bool:
        return any(secret in text for secret in self._address.hidden)
