"""The Prefect API that runs are reported to: the configured one, or the background server of this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable

import httpx
from prefect.context import AsyncClientContext, SyncClientContext
from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_ANALYTICS_ENABLED, temporary_settings

from flows.prefect_server import PrefectServer
from sandbox.errors import PlatformUnavailableError


@contextlib.asynccontextmanager
async def prefect_api(*, progress: Callable[[str], None] | None = None) -> AsyncIterator[str]:
    """Yields the address of the Prefect API and makes it the one in use.

    The configured one (``PREFECT_API_URL`` in the environment or in the active Prefect profile), else that of the
    background server, which is started if it does not run.

    Args:
        progress: Called with a line of text when the server has to be started.

    Raises:
        PlatformUnavailableError: The configured API does not answer, or the background server does not start; the text
            then holds the end of its log.
    """
    async with contextlib.AsyncExitStack() as stack:
        url = PREFECT_API_URL.value()
        if url is None:
            server = await PrefectServer().start(progress=progress)
            _keep_proxies_away()
            url = server.api_url
            stack.enter_context(temporary_settings({PREFECT_API_URL: url, PREFECT_SERVER_ANALYTICS_ENABLED: False}))
        # Without these, every flow run makes two clients of its own, and Prefect 3.9 leaves the sync one's socket open.
        try:
            await stack.enter_async_context(AsyncClientContext.get_or_create())
            stack.enter_context(SyncClientContext.get_or_create())
        except (RuntimeError, httpx.HTTPError) as error:
            raise PlatformUnavailableError(
                f"the Prefect API does not answer: {error}",
                remedy="See PREFECT_API_URL; without one, a background server of this machine is used.",
            ) from error
        yield str(url)


def _keep_proxies_away() -> None:
    """Lists 127.0.0.1 in ``NO_PROXY``: Prefect's client obeys proxy variables, and no proxy reaches this machine."""
    for name in ("NO_PROXY", "no_proxy"):
        listed = [item.strip() for item in os.environ.get(name, "").split(",") if item.strip()]
        if "127.0.0.1" not in listed and "*" not in listed:
            os.environ[name] = ",".join((*listed, "127.0.0.1"))
