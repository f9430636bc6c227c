"""Logos of the block types. The browser fetches them; where it has no way out, it shows none."""

from __future__ import annotations

from pydantic import HttpUrl


def logo(name: str) -> HttpUrl:
    """Returns the address of one of Prefect's own logos, at the commit Prefect names for its own blocks.

    Prefect's client takes http and https addresses only, so a logo cannot come with the package.

    Args:
        name: File name without its ending.
    """
    commit = "420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9"
    return HttpUrl(f"https://raw.githubusercontent.com/PrefectHQ/prefect/{commit}/assets/block-logos/{name}.png")
