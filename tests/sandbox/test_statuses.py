"""Each status of the platform, through the real SDK: an error of its own that says what to do next."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio
from daytona import AsyncDaytona, AsyncSandbox, CreateSandboxFromSnapshotParams

import sandbox.errors as errors
from sandbox.faults import is_missing, translated
from sandbox.local.faults import Fault, Faults
from sandbox.local.server import LocalPlatform
from sandbox.platform_api import create_snapshot
from sandbox.profiles import Resources
from tests.sandbox.conftest import Faulty
from tests.sandbox.fault_proxy import Harm
from tests.sandbox.shell_profile import shell_profile, validate

Call = Callable[[AsyncDaytona, AsyncSandbox], Awaitable[Any]]

BAD, LOST, DOWN = errors.BadRequestError, errors.SandboxLostError, errors.PlatformUnavailableError

PLANE: dict[int, type[errors.SandboxError]] = {
    400: BAD,
    401: errors.AuthenticationError,
    403: errors.AccessDeniedError,
    404: LOST,
    405: BAD,
    408: DOWN,
    409: DOWN,
    410: DOWN,
    413: BAD,
    422: BAD,
    429: errors.RateLimitedError,
    500: DOWN,
    501: BAD,
    502: DOWN,
    503: DOWN,
    504: DOWN,
}
TOOLBOX = PLANE | {410: LOST, 502: LOST}

PLANE_CALLS: dict[str, Call] = {
    "get": lambda client, box: client.get(box.id),
    "refresh": lambda _, box: box.refresh_data(),
    "create": lambda client, _: client.create(CreateSandboxFromSnapshotParams(name="status")),
    "start": lambda _, box: box.start(),
    "stop": lambda _, box: box.stop(),
    "recover": lambda _, box: box.recover(),
    "delete": lambda _, box: box.delete(),
    "snapshot": lambda client, _: client.snapshot.get("status"),
    "build": lambda client, _: create_snapshot(
        client, name="status", dockerfile="FROM x\n", resources=Resources(cpu=1, memory=1, disk=1), region=None
    ),
}
TOOLBOX_CALLS: dict[str, Call] = {
    "execute": lambda _, box: box.process.exec("true"),
    "session": lambda _, box: box.process.create_session("status"),
    "sessions": lambda _, box: box.process.list_sessions(),
    "command": lambda _, box: box.process.get_session_command("status", "none"),
    "upload": lambda _, box: box.fs.upload_file(b"x", "/tmp/status"),
    "download": lambda _, box: box.fs.download_file("/tmp/status"),
    "list": lambda _, box: box.fs.list_files("/tmp"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def box(daytona: AsyncDaytona) -> AsyncIterator[AsyncSandbox]:
    made = await daytona.create()
    yield made
    await made.delete()


@pytest.fixture
def faults(platform: LocalPlatform) -> Iterator[Faults]:
    yield platform.faults
    platform.faults.clear()


async def meaning(client: AsyncDaytona, box: AsyncSandbox, call: Call, *, toolbox: bool) -> errors.SandboxError:
    with pytest.raises(errors.SandboxError) as caught, translated("a step", sandbox="box", toolbox=toolbox):
        await call(client, box)
    return caught.value


@pytest.mark.parametrize("status", PLANE)
@pytest.mark.parametrize("name", PLANE_CALLS)
async def test_a_status_of_the_control_plane(
    faults: Faults, daytona: AsyncDaytona, box: AsyncSandbox, name: str, status: int
) -> None:
    faults.add(Fault(kind="fail", path="/api/.*", status=status, times=None, message="no such luck"))
    error = await meaning(daytona, box, PLANE_CALLS[name], toolbox=False)
    assert type(error) is PLANE[status]
    assert "no such luck" in str(error)
    assert error.remedy
    assert str(error).endswith(error.remedy)
    assert is_missing(error.__cause__ or error) == (status == 404)


@pytest.mark.parametrize("status", TOOLBOX)
@pytest.mark.parametrize("name", TOOLBOX_CALLS)
async def test_a_status_of_the_toolbox(
    faults: Faults, daytona: AsyncDaytona, box: AsyncSandbox, name: str, status: int
) -> None:
    faults.add(Fault(kind="fail", path="/toolbox/.*", status=status, times=None, origin="DAYTONA_DAEMON"))
    error = await meaning(daytona, box, TOOLBOX_CALLS[name], toolbox=True)
    # Of a download that is refused the SDK keeps the status alone, not who refused it.
    assert type(error) is (LOST if (name, status) == ("download", 400) else TOOLBOX[status])
    assert error.remedy
    assert str(error).endswith(error.remedy)


@pytest.mark.parametrize("name", TOOLBOX_CALLS)
async def test_a_proxy_that_refuses_says_that_the_sandbox_does_not_run(
    faults: Faults, daytona: AsyncDaytona, box: AsyncSandbox, name: str
) -> None:
    faults.add(Fault(kind="fail", path="/toolbox/.*", status=400, times=None, origin="DAYTONA_PROXY"))
    assert type(await meaning(daytona, box, TOOLBOX_CALLS[name], toolbox=True)) is LOST


@pytest.mark.parametrize("kind", ["cut", "lose_answer"])
@pytest.mark.parametrize(("name", "toolbox"), [("get", False), ("create", False), ("execute", True), ("upload", True)])
async def test_a_connection_that_breaks(
    faults: Faults, daytona: AsyncDaytona, box: AsyncSandbox, kind: Any, name: str, toolbox: bool
) -> None:
    faults.add(Fault(kind=kind, path="/(api|toolbox)/.*", times=None))
    call = (TOOLBOX_CALLS if toolbox else PLANE_CALLS)[name]
    error = await meaning(daytona, box, call, toolbox=toolbox)
    faults.clear()
    assert type(error) is DOWN
    assert error.remedy
    for left in [one async for one in daytona.list() if one.name == "status"]:
        await daytona.delete(left)


@pytest.mark.parametrize(
    ("message", "meant"),
    [
        ("Total CPU limit exceeded. Maximum allowed: 10.", errors.QuotaExceededError),
        ("Snapshot quota exceeded", errors.QuotaExceededError),
        ("No available runners", errors.CapacityError),
    ],
)
async def test_limits_of_the_account_and_of_the_platform_are_told_apart(
    faults: Faults, daytona: AsyncDaytona, box: AsyncSandbox, message: str, meant: type[errors.SandboxError]
) -> None:
    faults.add(Fault(kind="fail", path="/api/sandbox", status=400, message=message))
    error = await meaning(daytona, box, PLANE_CALLS["create"], toolbox=False)
    assert type(error) is meant
    assert error.remedy


@pytest.mark.parametrize("header", ["Retry-After", "retry-after-sandbox-create", "Retry-After-authenticated"])
async def test_what_a_429_asks_for_comes_through_the_sdk(
    faults: Faults, daytona: AsyncDaytona, box: AsyncSandbox, header: str
) -> None:
    faults.add(Fault(kind="fail", path="/api/.*", status=429, headers={header: "17"}))
    error = await meaning(daytona, box, PLANE_CALLS["get"], toolbox=False)
    assert isinstance(error, errors.RateLimitedError)
    assert error.retry_after == 17
    assert "asks to wait 17 s" in str(error)
    assert error.sandbox == "box"


@pytest.mark.parametrize("status", [400, 401, 403, 410, 429, 500])
async def test_nothing_is_created_on_doubt(faulty: Faulty, status: int) -> None:
    profile = shell_profile("true", type="status-doubt")
    assert (await validate(faulty.daytona, profile)).passed
    faulty.proxy.seen.clear()
    faulty.proxy.harms = [Harm(r"GET /api/sandbox/[^/]+$", status=status, times=99, headers={"Retry-After": "0"})]
    with pytest.raises(PLANE[status]):
        await validate(faulty.daytona, profile)
    assert faulty.proxy.count(r"POST /api/(sandbox|snapshots)") == 0
    assert faulty.proxy.count(r"DELETE /api/") == 0
    faulty.proxy.harms = []
    await faulty.daytona.delete(await faulty.daytona.get(profile.sandbox_name))
    await faulty.daytona.snapshot.delete(profile.snapshot_name)
