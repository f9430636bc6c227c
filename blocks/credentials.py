"""The block ``DaytonaCredentials``: access to a Daytona API, the key stored as a secret."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, ClassVar

from prefect.blocks.abstract import CredentialsBlock
from pydantic import Field, HttpUrl, SecretStr

from blocks.logos import logo
from sandbox.connection import CLOUD_URL, Credentials, client, resolve_credentials
from sandbox.errors import ConfigurationError

if TYPE_CHECKING:
    from daytona import AsyncDaytona


class DaytonaCredentials(CredentialsBlock):
    """Access to a Daytona API: Daytona's cloud, or any server that speaks the same API.

    Attributes:
        api_key: Sent as bearer token; stored as a secret.
        api_url: Address of the API.
        target: Region; empty takes the organization's default.

    Example:
        Load stored credentials and list the sandboxes:

        ```python
        from blocks import DaytonaCredentials

        credentials = DaytonaCredentials.load("BLOCK_NAME")
        async with credentials.get_client() as daytona:
            async for sandbox in daytona.list():
                print(sandbox.id, sandbox.state)
        ```
    """

    _block_type_name: ClassVar[str] = "Daytona Credentials"
    _block_type_slug: ClassVar[str] = "daytona-credentials"
    _logo_url: ClassVar[HttpUrl | None] = logo("secret")
    _documentation_url: ClassVar[HttpUrl] = HttpUrl("https://www.daytona.io/docs/en/api-keys/")
    _description: ClassVar[str] = "Access to a Daytona API, in the cloud or on a server of your own."

    api_key: SecretStr = Field(
        default=SecretStr(""), title="API key", description="Sent as bearer token; made in Daytona's dashboard."
    )
    api_url: str = Field(
        default=CLOUD_URL, title="API address", description="Address of the API, such as https://app.daytona.io/api."
    )
    target: str = Field(default="", title="Target", description="Region; empty takes the organization's default.")

    def credentials(self) -> Credentials:
        """Returns the checked credentials.

        Raises:
            ConfigurationError: The key is empty or the address is no http or https URL.
        """
        # An empty environment: what the block says is not mixed with the machine's variables.
        found = resolve_credentials(
            api_key=self.api_key, api_url=self.api_url, target=self.target or None, environment={}
        )
        if found is None:
            raise ConfigurationError(
                "is empty", field="api_key", remedy=f"Fill it in the block {self._block_document_name or 'document'}."
            )
        return found

    def get_client(self) -> AbstractAsyncContextManager[AsyncDaytona]:
        """Returns a context that lends the official SDK's client of this event loop.

        Raises:
            ConfigurationError: As for ``credentials``.
        """
        return client(self.credentials())
