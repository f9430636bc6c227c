"""Databases that a request names: what is read, what the program gets, what is hidden, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from flows.parameters import checked_request
from sandbox.databases import DatabaseConnection
from sandbox.databases.adonet import connection_string, parse_connection_string
from sandbox.errors import ConfigurationError
from sandbox.models import Isolation, ValidationRequest
from sandbox.naming import sandbox_name
from sandbox.profiles import builtin_profile

PASSWORD = "ge;he'im/@%= ž"
ENCODED = "ge%3Bhe%27im%2F%40%25%3D%20%C5%BE"


def connection(kind: str, url: str | None = None, **fields: Any) -> DatabaseConnection:
    return DatabaseConnection.model_validate({"kind": kind, "url": url, **fields})


def endpoints(kind: str, url: str, **fields: Any) -> list[str]:
    return [str(endpoint) for endpoint in connection(kind, url, **fields).endpoints]


@pytest.mark.parametrize(
    ("kind", "url", "expected"),
    [
        ("postgresql", "Host=localhost", ["localhost:5432"]),
        ("postgresql", "server = DB.Example.com. ; PORT = 5433 ;", ["db.example.com:5433"]),
        ("postgresql", "Host='localhost';Port=\"6000\"", ["localhost:6000"]),
        ("postgresql", "Host=a,b:6000,[::1]:7;Port=5", ["a:5", "b:6000", "[::1]:7"]),
        ("postgresql", "Host=2001:DB8::1", ["[2001:db8::1]:5432"]),
        ("postgresql", "postgresql://db.example.com/shop", ["db.example.com:5432"]),
        ("postgresql", "postgres://u:p%40w@a:1,b/shop?sslmode=require", ["a:1", "b:5432"]),
        ("postgresql", "  postgresql://[::1]:99  ", ["[::1]:99"]),
        ("sqlserver", "Server=tcp:db.example.com,14330;Database=shop", ["db.example.com:14330"]),
        ("sqlserver", "Data Source=db_1;Initial Catalog=shop", ["db_1:1433"]),
        ("sqlserver", r"Address=.\SQLEXPRESS,1444", ["localhost:1444"]),
        ("sqlserver", "server=(local)", ["localhost:1433"]),
        ("sqlserver", "Server=a;Failover Partner=b,1434", ["a:1433", "b:1434"]),
        ("sqlite", "shop.db", []),
        ("sqlite", "Data Source=data/shop.db;Mode=ReadOnly", []),
        ("sqlite", "Filename=:memory:", []),
        ("sqlite", "file:shop.db?mode=ro", []),
        ("mongodb", "mongodb://localhost", ["localhost:27017"]),
        ("mongodb", "mongodb://u:p%3Aw@h1,h2:27018,[::1]/shop?replicaSet=rs", ["h1:27017", "h2:27018", "[::1]:27017"]),
        ("neo4j", "bolt://localhost", ["localhost:7687"]),
        ("neo4j", "neo4j+s://graph.example.com:7688", ["graph.example.com:7688"]),
        ("neo4j", "neo4j://u:pw@10.1.2.3", ["10.1.2.3:7687"]),
    ],
)
def test_endpoints(kind: str, url: str, expected: list[str]) -> None:
    assert endpoints(kind, url) == expected


@pytest.mark.parametrize(
    ("kind", "url", "text"),
    [
        ("postgresql", "shop", "part 1 of it is not `key=value`"),
        ("postgresql", f"Password=x;{PASSWORD};Host=a", "part 2 of it is not"),
        ("postgresql", "Host='a", "the quotes around the value of part 1"),
        ("postgresql", "Host='a' b;Port=1", "the quotes around the value of part 1"),
        ("postgresql", "Database=shop", "names no `Host`"),
        ("postgresql", "Host=a;Port=0", "a port that is no number from 1 to 65535"),
        ("postgresql", "Host=a;Port=99999999999999999999", "a port that is no number"),
        ("postgresql", "Host=/var/run/postgresql", "a Unix socket"),
        ("postgresql", "Host=a b", "no valid host name"),
        ("postgresql", "Host=10.1", "no IPv4 address"),
        ("postgresql", "Host=0x7f000001", "no IPv4 address"),
        ("postgresql", "Host=a.0x1", "no IPv4 address"),
        ("postgresql", "Host=0.0.0.0", "at which no server can be reached"),
        ("postgresql", "Host=dvůr.example", "xn--"),
        ("postgresql", "mysql://a/b", "no PostgreSQL URL"),
        ("postgresql", "postgresql:///shop", "names no host"),
        ("postgresql", f"postgresql://u:{PASSWORD}@a/shop", "not percent-encoded"),
        ("postgresql", "postgresql://a/shop?sslrootcert=/etc/x", "Npgsql has no key"),
        ("postgresql", "jdbc:postgresql://a/shop", "a JDBC URL; write it as Host=…"),
        ("sqlserver", r"Server=.\SQLEXPRESS", "an instance without a port"),
        ("sqlserver", r"Server=(localdb)\MSSQLLocalDB", "no server that is reached by TCP"),
        ("sqlserver", r"Server=np:\\.\pipe\sql\query", "not reached by TCP; write tcp:host,port"),
        ("sqlserver", "sqlserver://a:1433", "is a URL"),
        ("sqlserver", "Database=shop", "names no `Server`"),
        ("sqlite", "/etc/passwd", "no file of the workspace"),
        ("sqlite", "Data Source=../shop.db", "no file of the workspace"),
        ("sqlite", r"C:\shop.db", "no file of the workspace"),
        ("sqlite", "file:/etc/passwd?mode=ro", "no file of the workspace"),
        ("sqlite", "Mode=Memory", "no file of the workspace"),
        ("mongodb", "mongodb+srv://u:secretpw@cluster.example.net/shop", "write them out as mongodb://host1:27017,"),
        ("mongodb", "http://a", "no MongoDB URI"),
        ("mongodb", "mongodb://%2Ftmp%2Fmongodb-27017.sock", "a Unix socket"),
        ("mongodb", "mongodb://", "names no host"),
        ("mongodb", "mongodb://a:01234567", "a port that is no number"),
        ("mongodb", "mongodb://u:secretpw%e4@a", "percent-encoded bytes that are no UTF-8"),
        ("neo4j", "http://a:7474", "no Neo4j URI"),
        ("neo4j", "bolt://a,b", "must name one host"),
        ("neo4j", "bolt://a/shop", "use `database`"),
        ("neo4j", "bolt://a\n", ""),
        ("mongodb", "mongodb://a\nb", "a control character"),
        ("mongodb", " ", "is empty"),
    ],
)
def test_what_is_no_address_is_told_by_its_field_and_never_shown(kind: str, url: str, text: str) -> None:
    document = {
        "profile": "java",
        "files": {"Main.java": ""},
        "connections": [{"kind": "sqlite", "url": "x.db", "variable": "OTHER"}, {"kind": kind, "url": url}],
    }
    if not text:
        assert checked_request(document).connections[1].endpoints
        return
    with pytest.raises(ConfigurationError) as caught:
        checked_request(document)
    assert caught.value.field == "connections[1].url"
    assert text in str(caught.value)
    for shown in (str(caught.value), repr(caught.value)):
        assert PASSWORD not in shown
        assert "secretpw" not in shown
        assert "mongodb-27017.sock" not in shown


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"kind": "postgresql"}, "`url` or `host` is needed"),
        ({"kind": "postgresql", "url": "Host=a", "host": "b"}, "`host` and `url` exclude each other"),
        ({"kind": "postgresql", "url": "Host=a", "port": 1}, "`port` and `url` exclude each other"),
        ({"kind": "postgresql", "url": "Host=a;Password=b", "password": "c"}, "`url` has a password already"),
        ({"kind": "mongodb", "url": "mongodb://u:p@a", "username": "v"}, "`url` has a username already"),
        ({"kind": "postgresql", "host": "a,b"}, "`host` is one host"),
        ({"kind": "postgresql", "host": "a b"}, "`host` has no valid host name"),
        ({"kind": "postgresql", "host": "a", "options": {"SSL Password": "x"}}, "`options` holds a secret"),
        ({"kind": "sqlite"}, "`url` or `database` is needed"),
        ({"kind": "sqlite", "database": "/x"}, "`database` names no file of the workspace"),
        ({"kind": "sqlite", "database": "x", "host": "a"}, "`host` has no meaning for a file"),
        ({"kind": "neo4j", "host": "a", "options": {"x": "y"}}, "`scheme` alone"),
        ({"kind": "mysql", "url": "x"}, "'postgresql', 'sqlserver', 'sqlite', 'mongodb' or 'neo4j'"),
        ({"kind": "postgresql", "host": "a", "variable": "1x"}, "not a name of an environment variable"),
        ({"kind": "postgresql", "host": "a", "variable": "UOM_X"}, "belongs to the shell or to the run"),
        ({"kind": "postgresql", "host": "a", "variable": "HOME"}, "belongs to the shell or to the run"),
        ({"kind": "neo4j", "host": "a", "variable": "GRAPH"}, "must end with _URI"),
        ({"kind": "neo4j", "host": "a", "password": "a\0b"}, "a NUL byte"),
        ({"kind": "neo4j", "host": "a", "username": "a\nb"}, "a control character"),
    ],
)
def test_parts_that_do_not_fit(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        DatabaseConnection.model_validate(fields)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("given", "variables"),
    [
        (
            connection("postgresql", f"postgresql://me:{ENCODED}@db:5433/shop?sslmode=verify-full&connect_timeout=3"),
            {
                "CONNECTION_STRING": f"Host=db;Port=5433;Database=shop;Username=me;Password=\"{PASSWORD}\""
                ";SSL Mode=VerifyFull;Timeout=3",
                "DATABASE_KIND": "postgresql",
            },
        ),
        (
            connection("postgresql", "postgresql://a:1,b/shop"),
            {"CONNECTION_STRING": "Host=a:1,b:5432;Database=shop", "DATABASE_KIND": "postgresql"},
        ),
        (
            connection("postgresql", "Host=db; Include Error Detail=true ", username="me", password=PASSWORD),
            {
                "CONNECTION_STRING": f'Host=db; Include Error Detail=true;Username=me;Password="{PASSWORD}"',
                "DATABASE_KIND": "postgresql",
            },
        ),
        (
            connection("postgresql", host="db", database="shop", options={"Pooling": "false"}, variable="SHOP"),
            {"SHOP": "Host=db;Port=5432;Database=shop;Pooling=false", "SHOP_KIND": "postgresql"},
        ),
        (
            connection("sqlserver", host="db", database="shop", username="sa", password='a"b'),
            {"CONNECTION_STRING": "Server=tcp:db,1433;Database=shop;User ID=sa;Password='a\"b'",
             "DATABASE_KIND": "sqlserver"},
        ),
        (
            connection("sqlite", "sqlite:///data/shop.db"),
            {"CONNECTION_STRING": "Data Source=data/shop.db", "DATABASE_KIND": "sqlite"},
        ),
        (
            connection("sqlite", database="a;b.db"),
            {"CONNECTION_STRING": 'Data Source="a;b.db"', "DATABASE_KIND": "sqlite"},
        ),
        (
            connection("mongodb", f"mongodb://me:{ENCODED}@a,b:2/shop?replicaSet=rs"),
            {"MONGODB_URI": f"mongodb://me:{ENCODED}@a,b:2/shop?replicaSet=rs"},
        ),
        (
            connection("mongodb", "mongodb://a/shop?replicaSet=rs", username="me", password=PASSWORD),
            {"MONGODB_URI": f"mongodb://me:{ENCODED}@a/shop?replicaSet=rs"},
        ),
        (
            connection("mongodb", host="a", username="me", password="x", options={"authSource": "admin"}),
            {"MONGODB_URI": "mongodb://me:x@a:27017/?authSource=admin"},
        ),
        (
            connection("neo4j", f"bolt://neo4j:{ENCODED}@graph", database="shop"),
            {"NEO4J_URI": "bolt://graph", "NEO4J_USERNAME": "neo4j", "NEO4J_PASSWORD": PASSWORD,
             "NEO4J_DATABASE": "shop"},
        ),
        (
            connection("neo4j", host="graph", options={"scheme": "neo4j+s"}, password="x", variable="A_URI"),
            {"A_URI": "neo4j+s://graph:7687", "A_PASSWORD": "x"},
        ),
    ],
)  # fmt: skip
def test_what_a_program_finds_in_its_environment(given: DatabaseConnection, variables: dict[str, str]) -> None:
    assert given.variables() == variables


@pytest.mark.parametrize(
    ("kind", "url", "expected"),
    [
        ("postgresql", "Host=a;SSL Mode=Require", False),
        ("postgresql", "postgresql://a/b?sslnegotiation=direct", True),
        ("sqlserver", "Server=a;Encrypt=true", False),
        ("sqlserver", "Server=a;Encrypt=Strict", True),
        ("mongodb", "mongodb://a/?tls=true", True),
        ("mongodb", "mongodb://a/?SSL=true", True),
        ("mongodb", "mongodb://a/?tls=false", False),
        ("neo4j", "neo4j://a", False),
        ("neo4j", "bolt+ssc://a", True),
    ],
)
def test_where_nothing_but_tls_is_spoken(kind: str, url: str, *, expected: bool) -> None:
    assert connection(kind, url).tls is expected


def test_passwords_are_hidden_in_every_form_and_addresses_without_one_are_not() -> None:
    url = f"postgresql://me:{ENCODED}@db/shop"
    hidden = connection("postgresql", url).hidden()
    assert {url, PASSWORD, ENCODED} <= hidden
    assert connection("postgresql", url).variables()["CONNECTION_STRING"] in hidden
    uri = f"mongodb://me:{ENCODED}@db/shop"
    assert {uri, PASSWORD, ENCODED} <= connection("mongodb", uri).hidden()
    beside = connection("mongodb", "mongodb://db/shop", password=PASSWORD)
    assert {beside.variables()["MONGODB_URI"], PASSWORD, ENCODED} <= beside.hidden()
    assert "mongodb://db/shop" not in beside.hidden()
    graph = connection("neo4j", f"bolt://neo4j:{ENCODED}@db").hidden()
    assert {PASSWORD, ENCODED, f"bolt://neo4j:{ENCODED}@db"} <= graph
    assert "bolt://db" not in graph
    assert "neo4j" not in graph
    assert "abc1" in connection("postgresql", "Host=a;SSL Password=abc1").hidden()
    for kind, plain in (("postgresql", "Host=a;Username=b"), ("mongodb", "mongodb://u@a"), ("neo4j", "bolt://a")):
        assert connection(kind, plain).hidden() == frozenset()


def test_nothing_secret_is_in_a_request_as_text() -> None:
    request = ValidationRequest(
        profile="java",
        files={"Main.java": ""},
        connections=(
            connection("postgresql", f'Host=a;Password="{PASSWORD}"'),
            connection("mongodb", host="b", password=PASSWORD),
        ),
    )
    for shown in (repr(request), str(request), request.model_dump_json()):
        assert "ge;he" not in shown
        assert "ge%3Bhe" not in shown


def test_two_databases_need_two_names() -> None:
    first, second = connection("postgresql", "Host=a"), connection("sqlserver", "Server=b")
    with pytest.raises(
        ValidationError, match=r"connections\[1\]\.variable: CONNECTION_STRING is set by connections\[0\]"
    ):
        ValidationRequest(profile="java", files={"a": ""}, connections=(first, second))
    named = second.model_copy(update={"variable": "OTHER"})
    ValidationRequest(profile="java", files={"a": ""}, connections=(first, named))
    with pytest.raises(ValidationError, match=r"connections\[0\]\.variable: DATABASE_KIND is in `environment` too"):
        ValidationRequest(profile="java", files={"a": ""}, connections=(first,), environment={"DATABASE_KIND": "x"})
    with pytest.raises(ValidationError, match=r"connections\[0\]\.variable: CONNECTION_STRING is in `secrets` too"):
        ValidationRequest(
            profile="java", files={"a": ""}, connections=(first,), secrets={"CONNECTION_STRING": SecretStr("x")}
        )


def test_a_sandbox_reaches_ten_endpoints_at_most() -> None:
    hosts = ",".join(f"h{number}" for number in range(10))
    ten = connection("mongodb", f"mongodb://{hosts}")
    same = connection("mongodb", "mongodb://h3", variable="AGAIN")
    ValidationRequest(profile="java", files={"a": ""}, connections=(ten, same))
    with pytest.raises(ValidationError, match="11 endpoints"):
        ValidationRequest(profile="java", files={"a": ""}, connections=(ten, connection("neo4j", "bolt://h3")))


def test_a_sandbox_belongs_to_what_it_may_reach() -> None:
    profile = builtin_profile("java")

    def name(*urls: str, isolation: Isolation = Isolation.SHARED) -> str:
        found = [endpoint for url in urls for endpoint in connection("mongodb", url).endpoints]
        return sandbox_name(profile, isolation=isolation, thread_id="t", run_id="r", endpoints=found)

    assert name() == "validation-sandbox-java-25-sandbox"
    assert name("mongodb://a") == name("mongodb://u:p@a:27017/x") != name("mongodb://a:1")
    assert name("mongodb://a", "mongodb://b") == name("mongodb://b,a")
    assert name("mongodb://a").startswith("validation-sandbox-java-25-sandbox-")
    assert len(name("mongodb://a")) == len(name()) + 9
    suffix = name("mongodb://a").removeprefix(name())
    assert name("mongodb://a", isolation=Isolation.RUN) == f"{name()}-r{suffix}"
    assert name("mongodb://a", isolation=Isolation.THREAD) == f"{name()}-t{suffix}"


@pytest.mark.parametrize("value", ["plain", "a;b", "a'b", 'a"b', "a'b\"c", " a ", "a=b", "ž 😀", "=", "'", '"', ";;"])
def test_connection_strings_are_read_as_they_are_written(value: str) -> None:
    pairs = [("Host", "x"), ("Pass=word", value), ("Port", "1")]
    assert parse_connection_string(connection_string(pairs)) == {"host": "x", "pass=word": value, "port": "1"}
