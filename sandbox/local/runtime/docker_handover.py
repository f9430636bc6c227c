"""Giving what a build has written to the user of the sandboxes that are made from it.

Builds run as root, because images expect it; sandboxes do not. Under bubblewrap both have one uid, and on Daytona's
cloud both are root, so programs rightly expect that what a build has put into its own directories can be written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from .docker_images import USER
from .errors import RuntimeFault
from .interface import Box
from .kit import INSIDE

_SECONDS = 600.0
_LONGEST_COMPLAINT = 2000

# Run by the kit's interpreter as root inside the container. Directories of the system stay root's, and so does what
# the image had before: giving it away would copy it into the layer.
_PROGRAM = f"""
import os, sys
since = float(sys.argv[1])
system = set("bin boot dev etc lib lib32 lib64 libx32 media mnt proc root run sbin sys tmp usr var".split())
device = os.lstat("/").st_dev
def give(path):
    found = os.lstat(path)
    if found.st_dev != device:
        return False
    if found.st_uid == 0 and found.st_ctime >= since:
        os.chown(path, {USER}, {USER}, follow_symlinks=False)
    return True
def fail(error):
    raise error
for name in sorted(set(os.listdir("/")) - system):
    top = "/" + name
    if os.path.islink(top) or not os.path.isdir(top) or not give(top):
        continue
    for directory, names, files in os.walk(top, onerror=fail):
        names[:] = [child for child in names if give(os.path.join(directory, child))]
        for child in files:
            give(os.path.join(directory, child))
"""


async def hand_over(box: Box, python: Sequence[str], *, since: float) -> None:
    """Makes what root has written since a moment the property of the sandbox's user.

    Args:
        box: A build box; nothing else runs in it.
        python: See ``Kit.python``.
        since: Seconds since the epoch.

    Raises:
        RuntimeFault: It failed; the text says how.
    """
    process = await box.run(
        [*python, "-c", _PROGRAM, repr(since)], env={"PYTHONHOME": INSIDE}, cwd="/", merge_stderr=True
    )
    text = b""
    try:
        async with asyncio.timeout(_SECONDS):
            while chunk := await process.stdout.read():
                text = (text + chunk)[-_LONGEST_COMPLAINT:]
            status = await process.wait()
    except TimeoutError as error:
        raise RuntimeFault(
            f"giving the files of the build to the sandbox's user took longer than {_SECONDS:g} s"
        ) from error
    finally:
        process.stdout.close()
        process.stderr.close()
    if status.exit_code != 0:
        raise RuntimeFault(
            f"giving the files of the build to the sandbox's user failed with {status.exit_code} "
            f"({status.reason}): {text.decode('utf-8', 'replace').strip()}"
        )
