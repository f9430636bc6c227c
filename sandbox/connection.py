"""Where the platform is, and one client per event loop that is always closed.

The key comes from arguments or the environment; without one, ``platform_credentials`` starts or reuses the local
platform. From here on nothing asks which of the two it talks to.

Importing this module is cheap: the SDK (about a second) is imported when the first client is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn
from urllib.parse import urlsplit

from pydantic import SecretStr

from sandbox.cleanup import to_the_end
from sandbox.errors import ClientClosedError, ConfigurationError, PlatformUnavailableError
from sandbox.models import Model

if TYPE_CHECKING:
    from daytona import AsyncDaytona

logger = logging.getLogger(__name__)

CLOUD_URL: Final = "https://app.daytona.io/api"
"""Daytona's hosted platform, the SDK's own default."""

SOCKET_SECONDS: Final = 5.0
"""Longest wait for the end of an event socket."""

KEEPALIVE_SECONDS: Final = 30.0
"""How long an idle connection is kept, as the SDK does."""

LOCAL_TARGET: Final = "local"
"""Region of the local platform; named, because the SDK would otherwise take ``DAYTONA_TARGET``, meant for the cloud."""

Choice = Literal["auto", "cloud", "local"]


class Credentials(Model):
    """Access to a Daytona API.

    Attributes:
        api_key: Sent as bearer token.
        api_url: Base of the control plane, without a slash at the end.
        target: Region; ``None`` takes the organization's default.
    """

    api_key: SecretStr
    api_url: str
    target: str | None = None

    @property
    def on_this_machine(self) -> bool:
        """True when the address is a loopback address, which no HTTP proxy can reach."""
        return is_on_this_machine(self.api_url)


def is_on_this_machine(api_url: str) -> bool:
    """Returns whether the host of an API is this machine, by its own name or address for itself."""
    host = urlsplit(api_url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def resolve_credentials(
    *,
    api_key: SecretStr | str | None = None,
    api_url: str | None = None,
    target: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Credentials | None:
    """Returns the credentials that arguments and environment give; an argument wins.

    Args:
        api_key: Instead of ``DAYTONA_API_KEY``.
        api_url: Instead of ``DAYTONA_API_URL``; Daytona's hosted platform when neither is set.
        target: Instead of ``DAYTONA_TARGET``.
        environment: Read instead of the process's environment.

    Returns:
        ``None`` when there is no key anywhere.

    Raises:
        ConfigurationError: The address is no http or https URL.
    """
    environment = os.environ if environment is None else environment
    key = api_key.get_secret_value() if isinstance(api_key, SecretStr) else api_key
    key = (key or environment.get("DAYTONA_API_KEY") or "").strip()
    if not key:
        return None
    url = (api_url or environment.get("DAYTONA_API_URL") or CLOUD_URL).strip()
    field = "api_url" if api_url else "DAYTONA_API_URL"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"{url!r} is not an address", field=field, remedy=f"It looks like {CLOUD_URL} or http://127.0.0.1:3986/api."
        )
    if parts.query or parts.fragment or parts.username or parts.password:
        raise ConfigurationError("must be scheme, host and path only", field=field)
    # The SDK joins address and path textually: a slash at the end would make every path miss.
    return Credentials(
        api_key=SecretStr(key), api_url=url.rstrip("/"), target=target or environment.get("DAYTONA_TARGET") or None
    )


async def platform_credentials(
    choice: Choice = "auto",
    *,
    api_key: SecretStr | str | None = None,
    api_url: str | None = None,
    target: str | None = None,
) -> Credentials:
    """Returns the credentials to use; starts or reuses the local platform when it is chosen.

    Args:
        choice: ``cloud``, ``local``, or ``auto``: the Daytona API when a key is set, else the local platform.
        api_key: As for ``resolve_credentials``.
        api_url: As for ``resolve_credentials``.
        target: As for ``resolve_credentials``.

    Raises:
        ConfigurationError: ``cloud`` is chosen and no key is set, or the local platform is not installed.
        PlatformUnavailableError: The local platform does not start; the text says why.
    """
    if choice != "local":
        found = resolve_credentials(api_key=api_key, api_url=api_url, target=target)
        if found is not None:
            return found
        if choice == "cloud":
            raise ConfigurationError(
                "no API key is set", field="DAYTONA_API_KEY", remedy="Set it, or choose the local platform."
            )
    return await _local_credentials()


def data_directory() -> Path:
    """Returns where this project keeps its data on this machine: ``UOM_SANDBOX_HOME``, or what it is by default.

    Raises:
        ConfigurationError: A ``UOM_`` variable cannot be used; the text names it.
    """
    from sandbox.local.settings import Settings, SettingsError

    try:
        return Settings.from_environment().home
    except SettingsError as error:
        raise ConfigurationError(str(error)) from None


async def _local_credentials() -> Credentials:
    from sandbox.local import service
    from sandbox.local.settings import SettingsError

    try:
        # Starts a process and waits for it: no work for the event loop.
        running = await asyncio.to_thread(service.start)
    except SettingsError as error:
        raise ConfigurationError(str(error)) from None
    except service.ServiceError as error:
        raise PlatformUnavailableError(f"the local platform does not start: {error}") from None
    if running.differs:
        logger.warning(
            "the local platform was started with other values of %s; `uom-sandbox platform stop`, then start it, "
            "to apply yours",
            ", ".join(running.differs),
        )
    return Credentials(api_key=SecretStr(running.api_key), api_url=running.api_url, target=LOCAL_TARGET)


class _Shared:
    """One client, the event sockets it has opened, and how many use it."""

    def __init__(self, daytona: AsyncDaytona) -> None:
        self.daytona = daytona
        self.users = 0
        self._sockets: set[Any] = set()
        dispatcher = daytona._event_dispatcher
        if dispatcher is not None:
            connect = dispatcher.connect

            async def remembered(timeout: float = 5.0) -> None:
                try:
                    await connect(timeout)
                finally:
                    self._sockets.add(dispatcher._sio)

            dispatcher.connect = remembered  # type: ignore[method-assign]

    async def close(self) -> None:
        """Closes the client with everything it has opened."""
        await _close(self.daytona)
        # The SDK disconnects its event socket, which ends neither the attempts to connect again nor the HTTP session of
        # the last one. A platform that went away would leave both behind.
        for socket in self._sockets - {None}:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(socket.shutdown(), SOCKET_SECONDS)
            if socket.eio.http is not None and not socket.eio.http.closed:
                await socket.eio.http.close()


_shared: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str, str | None], _Shared]] = (
    weakref.WeakKeyDictionary()
)


@asynccontextmanager
async def client(credentials: Credentials) -> AsyncIterator[AsyncDaytona]:
    """Lends the client of this event loop for these credentials; the last user closes it.

    A client belongs to the loop that made it, so tasks on other loops get another one. Nested and simultaneous use
    share one; hold an outer context around many validations to keep connections open between them.

    Yields:
        The SDK's client. Using it after the context has ended raises ``ClientClosedError``.
    """
    clients = _shared.setdefault(asyncio.get_running_loop(), {})
    identity = (credentials.api_url, credentials.api_key.get_secret_value(), credentials.target)
    shared = clients.get(identity)
    if shared is None:
        shared = clients[identity] = _Shared(_open(credentials))
    shared.users += 1
    try:
        yield shared.daytona
    finally:
        shared.users -= 1
        if not shared.users:
            del clients[identity]
            await to_the_end(shared.close())


def _open(credentials: Credentials) -> AsyncDaytona:
    import aiohttp
    from daytona import AsyncDaytona, DaytonaConfig

    daytona = AsyncDaytona(
        DaytonaConfig(
            api_key=credentials.api_key.get_secret_value(),
            api_url=credentials.api_url,
            target=credentials.target,
            # A followed log holds a connection for its whole life; a limit makes further calls wait in silence.
            connection_pool_maxsize=None,
        )
    )
    if credentials.on_this_machine:
        # The SDK's session obeys HTTP_PROXY even for 127.0.0.1 unless NO_PROXY lists it. The environment belongs to the
        # caller, so the session is replaced before the first request instead.
        daytona._shared_session._adopt(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS), trust_env=False
            )
        )
    return daytona


async def _close(daytona: Any) -> None:
    await daytona.close()
    # Closed, the SDK would open a new session at the next call and leave it open for ever.
    daytona._api_client.rest_client.request = _refuse
    daytona._toolbox_api_client.rest_client.request = _refuse


async def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ClientClosedError("the client of the platform is closed")
