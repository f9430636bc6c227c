"""The environment of processes in a box; nothing of the server's own is inherited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .errors import BoxSpawnError

SYSTEM_PATHS = ("/usr/local/bin", "/usr/bin", "/bin")
_LOCAL = ("localhost", "127.0.0.1", "::1")


def base_environment(home: str, *, paths: Sequence[str]) -> dict[str, str]:
    """Returns what every process has.

    Args:
        home: Home directory inside.
        paths: Directories of toolchains, searched before the system's.
    """
    return {"PATH": ":".join([*paths, *SYSTEM_PATHS]), "HOME": home, "LANG": "C.UTF-8", "TMPDIR": "/tmp"}  # noqa: S108


def checked(env: Mapping[str, str]) -> dict[str, str]:
    """Returns ``env``.

    Raises:
        BoxSpawnError: The kernel would not take a name or a value. The value is not repeated, it may be a secret.
    """
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            raise BoxSpawnError(f"{name!r} cannot be the name of an environment variable", exit_code=126)
        if "\0" in value:
            raise BoxSpawnError(f"the environment variable {name} contains a NUL character", exit_code=126)
    return dict(env)


def network_environment(port: int, *, direct: Sequence[str] = ()) -> dict[str, str]:
    """Returns what leads programs to the proxy on 127.0.0.1:``port``, but for the hosts in ``direct``.

    Both letter cases, because curl reads only ``http_proxy`` in small letters and others only capitals. Maven ignores
    the environment (3.8.7, measured) and takes the Java properties.
    """
    address = f"http://127.0.0.1:{port}"
    java = " ".join(f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={port}" for scheme in ("http", "https"))
    if direct:
        # In place of Java's own list, which is the same without them.
        java += f" -Dhttp.nonProxyHosts={'|'.join(['localhost', '127.*', '[::1]', *direct])}"
    values = {"MAVEN_OPTS": java}
    excepted = ",".join(dict.fromkeys([*_LOCAL, *direct]))
    for name, value in (("HTTP_PROXY", address), ("HTTPS_PROXY", address), ("NO_PROXY", excepted)):
        values[name] = values[name.lower()] = value
    return values
