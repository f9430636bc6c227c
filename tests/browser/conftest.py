"""A real browser for the Prefect UI: Chromium of this machine, which may talk to this machine alone."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.browser.pages import Ui

if TYPE_CHECKING:
    from playwright.async_api import Browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium, started once."""
    from playwright.async_api import async_playwright

    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no Chromium on this machine")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture
async def ui(browser: Browser, prefect_server: str) -> AsyncIterator[Ui]:
    """The UI of the session's Prefect server in a fresh window."""
    context = await browser.new_context(viewport={"width": 1400, "height": 1500})
    page = await context.new_page()
    ui = Ui(page, server=prefect_server.removesuffix("/api"), screenshots=SCREENSHOTS)
    await ui.watch()
    yield ui
    await context.close()
    ui.assert_unharmed()
