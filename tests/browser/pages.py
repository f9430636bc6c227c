"""The pages of the Prefect UI that the tests read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

from playwright.async_api import expect

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Locator, Page, Route

PATIENCE = 30_000
"""Milliseconds a page may take on a busy machine."""

DRAWING = 2_500
"""Milliseconds in which graphs move into place."""

HOSTILE_HOST = "evil.example"


class Ui:
    """One window.

    Args:
        page: The window.
        server: Address of the Prefect server.
        screenshots: Where pictures of the pages go.
    """

    def __init__(self, page: Page, *, server: str, screenshots: Path) -> None:
        self.page = page
        self._server = server
        self._screenshots = screenshots
        self._asked_for: list[str] = []
        self._said: list[str] = []
        self._broken: list[str] = []

    async def watch(self) -> None:
        """Keeps the browser to this machine and notes what a page does that it should not."""

        async def only_here(route: Route) -> None:
            if urlsplit(route.request.url).hostname in ("127.0.0.1", None):
                await route.continue_()
            else:
                self._asked_for.append(route.request.url)
                await route.abort()

        async def dismissed(dialog: Dialog) -> None:
            self._said.append(dialog.message)
            await dialog.dismiss()

        await self.page.route("**/*", only_here)
        self.page.on("dialog", dismissed)
        self.page.on("pageerror", lambda error: self._broken.append(str(error)))

    def assert_unharmed(self) -> None:
        """No text of a program was run, fetched from, or broke a page."""
        assert not [address for address in self._asked_for if HOSTILE_HOST in address]
        assert not self._said
        assert not self._broken

    async def open(self, path: str) -> None:
        """Opens a page by its path."""
        await self.page.goto(f"{self._server}{path}", wait_until="domcontentloaded", timeout=PATIENCE)

    async def open_run(self, run_id: UUID, *, tab: str = "Logs") -> None:
        """Opens the page of a flow run."""
        await self.open(f"/v2/runs/flow-run/{run_id}?tab={tab}")

    async def turn_to(self, tab: str) -> None:
        """Turns to another tab of a run's page."""
        await self.page.get_by_role("tab", name=tab, exact=True).click(timeout=PATIENCE)

    async def open_artifact(self, artifact_id: UUID, *, version: int = 2) -> None:
        """Opens the page of an artifact, in one of Prefect's two UIs."""
        await self.open(f"{'/v2' if version == 2 else ''}/artifacts/artifact/{artifact_id}")

    def text(self, text: str, *, exact: bool = False) -> Locator:
        """Where a text is seen on the page, the first of several."""
        return self.page.get_by_text(text, exact=exact).filter(visible=True).first

    async def shows(self, *texts: str) -> None:
        """Waits until the page shows each of the texts."""
        for text in texts:
            await expect(self.text(text)).to_be_visible(timeout=PATIENCE)

    async def shows_a_graph(self) -> None:
        """Waits until the page has drawn the tasks; their names are in the drawing, where only a person reads them."""
        await expect(self.page.locator("canvas")).to_have_count(1, timeout=PATIENCE)
        await self.page.wait_for_timeout(DRAWING)

    async def links_nowhere_else(self) -> None:
        """Checks that no text of a program became a link, an image or a script."""
        await expect(self.page.locator(f"img[src*='{HOSTILE_HOST}'], a[href*='{HOSTILE_HOST}']")).to_have_count(0)
        await expect(self.page.locator("a[href^='javascript']")).to_have_count(0)

    async def picture(self, name: str) -> None:
        """Keeps a picture of what the window shows."""
        await self.page.screenshot(path=self._screenshots / f"{name}.png", timeout=PATIENCE)
