"""The calls of one validation in their order, through the SDK."""

from __future__ import annotations

import uuid

import pytest
from daytona import (
    AsyncDaytona,
    CreateSandboxFromSnapshotParams,
    CreateSnapshotParams,
    DaytonaNotFoundError,
    Image,
    Resources,
    SessionExecuteRequest,
)

from tests.contract.conftest import BASE_IMAGE


async def test_from_nothing_to_a_result(daytona: AsyncDaytona) -> None:
    name = f"exchange-{uuid.uuid4()}"
    with pytest.raises(DaytonaNotFoundError):
        await daytona.snapshot.get(name)
    logs: list[str] = []
    image = Image.base(BASE_IMAGE).run_commands(
        "echo preparing the environment", "mkdir -p /opt/env && echo ready > /opt/env/x"
    )
    made = await daytona.snapshot.create(
        CreateSnapshotParams(name=name, image=image, resources=Resources(cpu=1, memory=1, disk=3)),
        on_logs=logs.append,
        timeout=600,
    )
    try:
        assert made.state == "active"
        assert "preparing the environment" in "\n".join(logs)
        assert (await daytona.snapshot.get(name)).id == made.id

        with pytest.raises(DaytonaNotFoundError):
            await daytona.get(name)
        sandbox = await daytona.create(
            CreateSandboxFromSnapshotParams(name=name, snapshot=name, auto_stop_interval=60, network_block_all=True)
        )
        try:
            assert sandbox.state == "started"
            found = await daytona.get(name)
            assert (found.id, found.auto_stop_interval, found.network_block_all) == (sandbox.id, 60, True)

            session = f"{name}-{uuid.uuid4()}"
            await sandbox.process.create_session(session)
            root = f"/tmp/{uuid.uuid4()}"
            program = b"import json, sys\nprint('out', flush=True)\nprint('err', file=sys.stderr)\n"
            program += f"json.dump({{'count': 3}}, open('{root}/results/result.json', 'w'))\n".encode()
            await sandbox.fs.create_folder(f"{root}/results", "755")
            await sandbox.fs.upload_file(program, f"{root}/main.py")
            command = f"bash -c 'cd {root} && python3 main.py && exit 3' < /dev/null"
            started = await sandbox.process.execute_session_command(
                session, SessionExecuteRequest(command=command, run_async=True)
            )
            out: list[str] = []
            err: list[str] = []
            await sandbox.process.get_session_command_logs_async(session, started.cmd_id, out.append, err.append)
            assert ("".join(out).strip(), "".join(err).strip()) == ("out", "err")
            finished = await sandbox.process.get_session_command(session, started.cmd_id)
            assert finished.exit_code == 3
            assert await sandbox.fs.download_file(f"{root}/results/result.json") == b'{"count": 3}'
            await sandbox.process.delete_session(session)

            await sandbox.stop()
            assert sandbox.state == "stopped"
            again = await daytona.get(name)
            await again.start()
            assert again.state == "started"
            assert (await again.process.exec("cat /opt/env/x")).result == "ready\n"
        finally:
            await sandbox.delete()
        with pytest.raises(DaytonaNotFoundError):
            await daytona.get(name)
    finally:
        await daytona.snapshot.delete(made)
