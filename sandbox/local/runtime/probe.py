"""Why a box could not be started on this machine, in words that say what to do about it."""

from __future__ import annotations

from pathlib import Path

# What bwrap 0.11 or the kernel says → what it means. The texts were seen on real machines; the first match counts.
_ADVICE = (
    (
        "No permissions to creat",
        "this machine does not let programs make user namespaces. Ask its administrator to allow them "
        "(sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, or an AppArmor profile that "
        "allows userns for bwrap); inside a container it needs a relaxed seccomp profile",
    ),
    (
        "setting up uid map: Permission denied",
        "this machine restricts what user namespaces may do (AppArmor); its administrator can allow it with "
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "namespace failed: nesting depth or /proc/sys/user/max_",
        "the limit of namespaces is used up; raise sysctl user.max_user_namespaces and its relatives",
    ),
    (
        "Creating new namespace failed",
        "the kernel refuses new namespaces; raise sysctl user.max_user_namespaces and its relatives",
    ),
    (
        "Can't mount proc",
        "the server runs inside a container that hides parts of /proc; start that container with "
        "'--security-opt systempaths=unconfined' (Docker) or run the server outside",
    ),
    (
        "Can't make overlay mount",
        "the file system of the data directory cannot hold the writable layer of an overlay, as inside a container "
        "without a volume; choose a data directory on ext4, xfs, btrfs or tmpfs, such as a mounted volume",
    ),
    (
        "Can't find source path",
        "a directory that sandboxes need cannot be reached by their uid; see the path in the message",
    ),
    (
        "No such file or directory",
        "a program that sandboxes need is missing; see the message",
    ),
)

SCRIPT = """
set -e
test "$(id -u)" = 1000
echo written > probe && grep -q written probe && mv probe other && rm other
rm -r /srv && test ! -e /srv
"""
"""What a box must be able to do: write, rename, and delete something of a lower layer."""


def unavailable_text(complaint: str, *, data_directory: Path) -> str:
    """Returns a text for ``RuntimeUnavailableError``.

    Args:
        complaint: What bwrap or the probe wrote.
        data_directory: Named in the text, because half of the causes lie there.
    """
    advice = next((advice for words, advice in _ADVICE if words in complaint), None)
    text = (
        f"sandboxes cannot be started with data directory {data_directory}: {complaint.strip() or 'no answer in time'}"
    )
    return f"{text}\n{advice[0].upper()}{advice[1:]}." if advice else text
