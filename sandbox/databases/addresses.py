"""What a database's URL or connection string says: who listens where, and what the program is given.

No error repeats what it was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sandbox.databases.adonet import connection_string, first_of, parse_connection_string, quoted
from sandbox.databases.endpoints import Endpoint, checked_host, checked_port, parse_endpoint
from sandbox.databases.kinds import KINDS, DatabaseKind
from sandbox.databases.urls import DatabaseUrl, parse_url, url_text
from sandbox.request_checks import check_relative_path

PASSWORD_KEYS: Final = ("password", "pwd", "psw")
_SECRET_KEY: Final = re.compile(r"passw|passphrase|pwd|psw|secret|token", re.IGNORECASE)

NPGSQL_KEYS: Final = {
    "sslmode": "SSL Mode",
    "sslnegotiation": "SSL Negotiation",
    "channel_binding": "Channel Binding",
    "connect_timeout": "Timeout",
    "application_name": "Application Name",
    "client_encoding": "Client Encoding",
    "options": "Options",
    "target_session_attrs": "Target Session Attributes",
}
"""Parameters of ``postgresql://`` URLs (libpq's names) → Npgsql's keys."""

NPGSQL_VALUES: Final = {"verify-ca": "VerifyCA", "verify-full": "VerifyFull"}
"""Values that Npgsql spells in another way than libpq, beyond the case of letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """How a database is reached.

    Attributes:
        text: Connection string or URI for the program, with the credentials where its driver expects them there.
        endpoints: Where it listens; of several, one that answers is enough. Empty for a file.
        username: Who logs in; empty when that is left to the driver.
        password: Likewise.
        tls: Whether nothing but TLS may be spoken from the first byte on.
        hidden: Texts that are as secret as the password: other forms of it, other secrets of the options.
    """

    text: str
    endpoints: tuple[Endpoint, ...] = ()
    username: str = ""
    password: str = ""
    tls: bool = False
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A database named by its parts; empty ones are left to the driver."""

    host: str = ""
    port: int | None = None
    database: str = ""
    username: str = ""
    password: str = ""
    options: tuple[tuple[str, str], ...] = ()


def read_address(kind: DatabaseKind, text: str, *, username: str = "", password: str = "") -> Address:
    """Reads what a caller gave as one text.

    Args:
        kind: Which database.
        text: URL, connection string, or for SQLite the path of a file.
        username: Taken when the text names none.
        password: Likewise.

    Raises:
        ValueError: It is no address of such a database, or has credentials that are given beside it too.
    """
    text = text.strip()
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("holds a control character")
    if text.lower().startswith("jdbc:"):
        raise ValueError(f"is a JDBC URL; write it as {KINDS[kind].form}")
    return _READERS[kind](text, username, password)


def address_of(kind: DatabaseKind, parts: Parts) -> Address:
    """Makes the address from parts.

    Raises:
        ValueError: A part is missing or wrong; the text names it.
    """
    if kind is DatabaseKind.SQLITE:
        return _sqlite_of(parts)
    if not parts.host:
        raise ValueError("`url` or `host` is needed")
    if "," in parts.host:
        raise ValueError("`host` is one host; several belong into `url`")
    try:
        endpoint = Endpoint(checked_host(parts.host), parts.port or KINDS[kind].port or 0)
    except ValueError as error:
        raise ValueError(f"`host` {error}") from None
    return _MAKERS[kind](parts, endpoint)


# ADO.NET: PostgreSQL through Npgsql, SQL Server through SqlClient, SQLite through Microsoft.Data.Sqlite


def _read_postgresql(text: str, username: str, password: str) -> Address:
    if "://" in text.partition("=")[0]:
        return _from_postgresql_url(text, username, password)
    values = parse_connection_string(text)
    hosts = first_of(values, "host", "server")
    if not hosts:
        raise ValueError("names no `Host`")
    port = _port(values, DatabaseKind.POSTGRESQL)
    return _with_login(
        text,
        values,
        endpoints=_hosts(hosts, port=port),
        user_keys=("username", "userid", "uid"),
        user_key="Username",
        username=username,
        password=password,
        tls=first_of(values, "sslnegotiation").lower() == "direct",
    )


def _from_postgresql_url(text: str, username: str, password: str) -> Address:
    url = parse_url(text, port=KINDS[DatabaseKind.POSTGRESQL].port or 0)
    if url.scheme not in ("postgresql", "postgres"):
        raise ValueError("is no PostgreSQL URL; it begins with postgresql://")
    if not url.endpoints:
        raise ValueError("names no host")
    options = []
    for name, value in url.parameters:
        if name not in NPGSQL_KEYS:
            raise ValueError(
                "has a parameter that Npgsql has no key for; write it as a connection string "
                f"({KINDS[DatabaseKind.POSTGRESQL].form}), or use {', '.join(NPGSQL_KEYS)}"
            )
        options.append((NPGSQL_KEYS[name], NPGSQL_VALUES.get(value, value)))
    login = _login(url.username, url.password, username, password)
    if len(url.endpoints) == 1:
        where = [("Host", url.endpoints[0].host), ("Port", str(url.endpoints[0].port))]
    else:
        where = [("Host", ",".join(map(str, url.endpoints)))]
    made = connection_string([*where, ("Database", url.path), ("Username", login[0]), ("Password", login[1]), *options])
    address = _read_postgresql(made, "", "")
    return replace(address, hidden=address.hidden | _hidden(url.raw_password, text if url.password else ""))


def _postgresql_of(parts: Parts, endpoint: Endpoint) -> Address:
    return _read_postgresql(
        _ado(parts, [("Host", endpoint.host), ("Port", str(endpoint.port))], user="Username"), "", ""
    )


def _read_sqlserver(text: str, username: str, password: str) -> Address:
    if "://" in text.partition("=")[0]:
        raise ValueError(
            f"is a URL, which SQL Server's client does not take; write {KINDS[DatabaseKind.SQLSERVER].form}"
        )
    values = parse_connection_string(text)
    source = first_of(values, "datasource", "server", "address", "addr", "networkaddress")
    if not source:
        raise ValueError("names no `Server`")
    partner = first_of(values, "failoverpartner")
    return _with_login(
        text,
        values,
        endpoints=tuple(_sqlserver_endpoint(item) for item in (source, partner) if item),
        user_keys=("userid", "uid", "user"),
        user_key="User ID",
        username=username,
        password=password,
        tls=first_of(values, "encrypt").lower() == "strict",
    )


def _sqlserver_endpoint(source: str) -> Endpoint:
    r"""Reads ``[tcp:]host[\instance][,port]``."""
    protocol, colon, rest = source.partition(":")
    if colon and protocol.strip().lower() in ("tcp", "np", "lpc", "admin"):
        if protocol.strip().lower() != "tcp":
            raise ValueError("names a server that is not reached by TCP; write tcp:host,port")
        source = rest
    place, _, port = source.partition(",")
    host, _, instance = place.strip().partition("\\")
    if host.strip().lower() == "(localdb)" or not host:
        raise ValueError("names no server that is reached by TCP; write host,port")
    if instance and not port:
        raise ValueError(
            "names an instance without a port, for which a service on UDP would have to be asked; "
            "write host,port with the port on which the instance listens"
        )
    name = "localhost" if host.strip().lower() in (".", "(local)") else host
    number = checked_port(port) if port else KINDS[DatabaseKind.SQLSERVER].port or 0
    return Endpoint(checked_host(name), number)


def _sqlserver_of(parts: Parts, endpoint: Endpoint) -> Address:
    server = [("Server", f"tcp:{endpoint.host},{endpoint.port}")]
    return _read_sqlserver(_ado(parts, server, user="User ID"), "", "")


def _read_sqlite(text: str, username: str, password: str) -> Address:
    text = text.removeprefix("sqlite:///")
    if "://" in text:
        raise ValueError("is a URL; write the path of a file of the workspace, or Data Source=…")
    if "=" not in text or text.startswith("file:"):
        text = connection_string([("Data Source", text)])
    values = parse_connection_string(text)
    _check_file(first_of(values, "datasource", "filename"))
    if username:
        raise ValueError("is a file, which has no users")
    return _with_login(text, values, endpoints=(), user_keys=(), user_key="", username="", password=password, tls=False)


def _check_file(source: str) -> None:
    path = source.removeprefix("file:").partition("?")[0] if source.startswith("file:") else source
    if path == ":memory:":
        return
    try:
        check_relative_path(path)
    except ValueError:
        raise ValueError(
            "names no file of the workspace; its path is relative, with forward slashes and without `..`"
        ) from None


def _sqlite_of(parts: Parts) -> Address:
    for name, value in (("host", parts.host), ("port", parts.port), ("username", parts.username)):
        if value:
            raise ValueError(f"`{name}` has no meaning for a file; name it in `database`")
    if not parts.database:
        raise ValueError("`url` or `database` is needed: the path of the file in the workspace")
    pairs = [("Data Source", parts.database), ("Password", parts.password), *parts.options]
    try:
        return _read_sqlite(connection_string(pairs), "", "")
    except ValueError as error:
        raise ValueError(f"`database` {error}") from None


def _ado(parts: Parts, where: list[tuple[str, str]], *, user: str) -> str:
    for key, _ in parts.options:
        if _SECRET_KEY.search(key):
            raise ValueError("`options` holds a secret; a password belongs into `password`, another one into `url`")
    login = [("Database", parts.database), (user, parts.username), ("Password", parts.password)]
    return connection_string([*where, *login, *parts.options])


def _with_login(
    text: str,
    values: dict[str, str],
    *,
    endpoints: tuple[Endpoint, ...],
    user_keys: tuple[str, ...],
    user_key: str,
    username: str,
    password: str,
    tls: bool,
) -> Address:
    own = first_of(values, *user_keys), first_of(values, *PASSWORD_KEYS)
    user, secret = _login(*own, username, password)
    added = [(user_key, user if not own[0] else ""), ("Password", secret if not own[1] else "")]
    if more := connection_string(added):
        text = f"{text.rstrip('; ')};{more}"
    secrets = [value for key, value in values.items() if _SECRET_KEY.search(key)]
    secrets += [secret]
    hidden = _hidden(*secrets, *(quoted(value) for value in secrets if value), text if any(secrets) else "")
    return Address(text=text, endpoints=endpoints, username=user, password=secret, tls=tls, hidden=hidden)


def _port(values: dict[str, str], kind: DatabaseKind) -> int:
    return checked_port(values["port"]) if values.get("port") else KINDS[kind].port or 0


def _hosts(text: str, *, port: int) -> tuple[Endpoint, ...]:
    return tuple(parse_endpoint(item, port=port) for item in text.split(","))


# URIs: MongoDB and Neo4j


def _read_mongodb(text: str, username: str, password: str) -> Address:
    url = parse_url(text, port=KINDS[DatabaseKind.MONGODB].port or 0) if "+srv:" not in text.lower() else None
    if url is None:
        raise ValueError(
            "is a mongodb+srv:// URI, whose hosts only DNS knows, which a sandbox cannot ask; "
            "write them out as mongodb://host1:27017,host2:27017/…?tls=true&replicaSet=…"
        )
    if url.scheme != "mongodb":
        raise ValueError(f"is no MongoDB URI; write {KINDS[DatabaseKind.MONGODB].form}")
    if not url.endpoints:
        raise ValueError("names no host")
    user, secret = _login(url.username, url.password, username, password)
    if (user, secret) != (url.username, url.password):
        text = url_text(url, username=user, password=secret)
    tls = url.parameter("tls", "ssl").lower() == "true"
    return _from_url(url, text=text, user=user, secret=secret, tls=tls)


def _mongodb_of(parts: Parts, endpoint: Endpoint) -> Address:
    bare = DatabaseUrl(
        scheme="mongodb",
        username="",
        password="",
        raw_password="",
        endpoints=(endpoint,),
        authority=str(endpoint),
        path=parts.database,
        parameters=parts.options,
    )
    return _read_mongodb(url_text(bare, username=parts.username, password=parts.password), "", "")


_NEO4J_SCHEMES: Final = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")


def _read_neo4j(text: str, username: str, password: str) -> Address:
    url = parse_url(text, port=KINDS[DatabaseKind.NEO4J].port or 0)
    if url.scheme not in _NEO4J_SCHEMES:
        raise ValueError(f"is no Neo4j URI; write {KINDS[DatabaseKind.NEO4J].form}")
    if len(url.endpoints) != 1:
        raise ValueError("must name one host")
    if url.path:
        raise ValueError("names a database in its path, which Neo4j's driver does not take; use `database`")
    user, secret = _login(url.username, url.password, username, password)
    # Neo4j's drivers take user and password beside the URI and refuse them in it.
    bare = url_text(url, username="", password="")
    address = _from_url(url, text=bare, user=user, secret=secret, tls="+" in url.scheme)
    return replace(address, hidden=_hidden(*address.hidden - {bare}, text if url.password else ""))


def _neo4j_of(parts: Parts, endpoint: Endpoint) -> Address:
    options = dict(parts.options)
    scheme = options.pop("scheme", "bolt")
    if options or scheme not in _NEO4J_SCHEMES:
        raise ValueError(f"`options` for Neo4j is `scheme` alone, one of {', '.join(_NEO4J_SCHEMES)}")
    return _read_neo4j(f"{scheme}://{endpoint}", parts.username, parts.password)


def _from_url(url: DatabaseUrl, *, text: str, user: str, secret: str, tls: bool) -> Address:
    secrets = [secret, *(value for name, value in url.parameters if _SECRET_KEY.search(name))]
    encoded = parse_url(text, port=1).raw_password
    hidden = _hidden(*secrets, url.raw_password, encoded, text if any(secrets) else "")
    return Address(text=text, endpoints=url.endpoints, username=user, password=secret, tls=tls, hidden=hidden)


def _login(own_user: str, own_password: str, username: str, password: str) -> tuple[str, str]:
    for own, given, name in ((own_user, username, "username"), (own_password, password, "password")):
        if own and given:
            raise ValueError(f"has a {name} already; leave out `{name}`")
    return own_user or username, own_password or password


def _hidden(*texts: str) -> frozenset[str]:
    return frozenset(filter(None, texts))


Reader = Callable[[str, str, str], Address]

_READERS: Final[dict[DatabaseKind, Reader]] = {
    DatabaseKind.POSTGRESQL: _read_postgresql,
    DatabaseKind.SQLSERVER: _read_sqlserver,
    DatabaseKind.SQLITE: _read_sqlite,
    DatabaseKind.MONGODB: _read_mongodb,
    DatabaseKind.NEO4J: _read_neo4j,
}
_MAKERS: Final[dict[DatabaseKind, Callable[[Parts, Endpoint], Address]]] = {
    DatabaseKind.POSTGRESQL: _postgresql_of,
    DatabaseKind.SQLSERVER: _sqlserver_of,
    DatabaseKind.MONGODB: _mongodb_of,
    DatabaseKind.NEO4J: _neo4j_of,
}
