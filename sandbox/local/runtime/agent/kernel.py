"""The few things of the kernel that Python's standard library does not offer."""

from __future__ import annotations

import _ctypes

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Makes the calling process the parent of every orphan among its descendants (prctl(2), PR_SET_CHILD_SUBREAPER).

    Called through ``_ctypes``, because importing ``ctypes`` costs each session three milliseconds.
    """
    address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[attr-defined]
    result = _ctypes.call_function(address, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    if result != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed")
