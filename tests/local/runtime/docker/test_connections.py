"""The checks of ``tests.local.runtime.test_connections`` against containers."""

import pytest

from sandbox.local.runtime.errors import RuntimeFault
from sandbox.local.runtime.interface import Endpoint
from tests.local.runtime.test_connections import *  # noqa: F403

from .conftest import BoxMaker


async def test_a_start_without_them_takes_them_away(make_box: BoxMaker) -> None:  # type: ignore[no-redef]
    """A container cannot be given other host names, so it is refused in words."""
    box = await make_box(connections=(Endpoint("db.example", 5432),))
    await box.stop(force=True)
    with pytest.raises(RuntimeFault, match="not those it was made with"):
        await make_box(box.spec.box_id)
