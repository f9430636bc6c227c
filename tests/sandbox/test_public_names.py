from __future__ import annotations

import subprocess
import sys

import sandbox


def test_every_public_name_is_there() -> None:
    assert list(sandbox.__all__) == sorted(sandbox.__all__)
    for name in sandbox.__all__:
        assert getattr(sandbox, name) is not None
    assert dir(sandbox) == sorted(sandbox.__all__)


def test_what_needs_no_platform_does_not_import_the_sdk() -> None:
    code = (
        "import sys; from sandbox import (Credentials, EventStream, Outcome, SandboxError, ValidationRequest, "
        "builtin_profile, compare, platform_credentials, resolve_credentials); "
        "import sandbox.diagnostics, sandbox.retry, sandbox.streaming; "
        "print([name for name in ('daytona', 'aiohttp', 'prefect') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
