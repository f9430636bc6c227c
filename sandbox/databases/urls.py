"""URLs of databases: user, several hosts, path and parameters. No error repeats what it was given."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from sandbox.databases.endpoints import Endpoint, parse_endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseUrl:
    """The parts of a URL.

    Attributes:
        scheme: In lower case.
        username: Decoded; empty for none.
        password: Decoded; empty for none.
        raw_password: As it stands in the URL.
        endpoints: Every host with its port.
        authority: The hosts as they stand there.
        path: What follows them, decoded, without the slash.
        parameters: After the question mark, decoded, in order.
    """

    scheme: str
    username: str
    password: str
    raw_password: str
    endpoints: tuple[Endpoint, ...]
    authority: str
    path: str
    parameters: tuple[tuple[str, str], ...]

    def parameter(self, *names: str) -> str:
        """Returns the value of the last parameter of one of these names, without regard to case; empty for none."""
        wanted = {name.lower() for name in names}
        return next((value for name, value in reversed(self.parameters) if name.lower() in wanted), "")


def parse_url(text: str, *, port: int) -> DatabaseUrl:
    """Reads a URL.

    Args:
        text: The URL.
        port: Of hosts that name none.

    Raises:
        ValueError: It is none, a host or port of it is wrong, or what is percent-encoded is no UTF-8.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or not scheme:
        raise ValueError("is no URL")
    end = min((found for found in map(rest.find, "/?#") if found >= 0), default=len(rest))
    if "@" in rest[end:].partition("?")[0] and "@" not in rest[:end]:
        raise ValueError("has a user name or password in which / : @ ? # % are not percent-encoded")
    userinfo, _, authority = rest[:end].rpartition("@")
    tail, _, _ = rest[end:].partition("#")
    path, _, query = tail.partition("?")
    username, _, password = userinfo.partition(":")
    return DatabaseUrl(
        scheme=scheme.lower(),
        username=_decoded(username),
        password=_decoded(password),
        raw_password=password,
        endpoints=tuple(parse_endpoint(item, port=port) for item in authority.split(",")) if authority else (),
        authority=authority,
        path=_decoded(path.removeprefix("/")),
        parameters=tuple(
            (_decoded(name), _decoded(value))
            for name, _, value in (item.partition("=") for item in query.split("&") if item)
        ),
    )


def url_text(url: DatabaseUrl, *, username: str, password: str) -> str:
    """Returns a URL with another user and password, everything encoded."""
    user = f"{_encoded(username)}{f':{_encoded(password)}' if password else ''}@" if username or password else ""
    query = "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in url.parameters)
    path = f"/{quote(url.path)}" if url.path or query else ""
    return f"{url.scheme}://{user}{url.authority}{path}{f'?{query}' if query else ''}"


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("has percent-encoded bytes that are no UTF-8, such as %e4 for %C3%A4") from None


def _encoded(text: str) -> str:
    return quote(text, safe="")
