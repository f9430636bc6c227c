"""The few things of the kernel that Python's standard library does not offer."""

from __future__ import annotations

import _ctypes

_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Makes the calling process the parent of every orphan among its descendants (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_reachable(reachable: bool) -> None:
    """Opens or closes the calling process's memory and descriptors to others of its user (prctl(2), PR_SET_DUMPABLE).

    Every process of a box has the same uid, and /proc/<pid>/mem needs no system call that the filter could refuse.
    Forks inherit the setting; exec opens the process again.
    """
    _prctl(_PR_SET_DUMPABLE, int(reachable))


def install_filter(program: bytes) -> None:
    """Adds a system call filter to the calling process and its descendants, beside those it has (seccomp(2)).

    Args:
        program: Instructions of classic BPF, eight bytes each. The process must not be able to gain privileges.
    """
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)
    filled = Program(len(program) // 8, program)
    if prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filled)) != 0:
        raise OSError(ctypes.get_errno(), "the system call filter was refused")


def _prctl(option: int, value: int) -> None:
    # Through ``_ctypes``, because importing ``ctypes`` costs three milliseconds.
    function = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    if _ctypes.call_function(function, (option, value, 0, 0, 0)) != 0:
        raise OSError(f"prctl({option}) failed")
