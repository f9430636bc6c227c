"""Starting a program: what happens between fork and exec, and how a failure gets back."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # below signal, which imports enum
import errno
import os
import resource

from .kernel import set_reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Python ignores both; a program expects to die of them.
_IGNORED_BY_PYTHON = (_signal.SIGPIPE, _signal.SIGXFSZ)
# Signals by which a program in the box could end a supervisor; the supervisor ignores them, its children must not.
STANDARD_DEATHS = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2)

_RESOURCES = {
    "core": resource.RLIMIT_CORE,
    "files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "file_size": resource.RLIMIT_FSIZE,
    "data": resource.RLIMIT_DATA,
}


class StartError(Exception):
    """The program did not start: in which step (``fork``, ``directory`` or ``program``) and with which errno."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(step, number)
        self.step = step
        self.errno = number


def apply_limits(limits: Mapping[str, int]) -> None:
    """Sets the limits of the calling process, hard and soft, never above what it may have."""
    for name, value in limits.items():
        kind = _RESOURCES[name]
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


def prefer_for_oom() -> None:
    """Lets the kernel's memory killer take the calling process before agent and supervisors."""
    descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    try:
        os.write(descriptor, b"500")
    finally:
        os.close(descriptor)


def _execute(argv: list[str], env: dict[str, str]) -> None:
    """As ``os.execvpe``, which imports ``warnings`` in every child."""
    program = argv[0]
    if "/" in program:
        os.execve(program, argv, env)
    denied: OSError | None = None
    for directory in env.get("PATH", os.defpath).split(":"):
        try:
            os.execve(os.path.join(directory or ".", program), argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            denied = denied or error
    raise denied or FileNotFoundError(errno.ENOENT, "not found")


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    directory: str,
    limits: Mapping[str, int],
    descriptors: Mapping[int, int],
) -> int:
    """Starts a program in its own session and returns its pid once exec has succeeded.

    Args:
        argv: Program (looked up in the ``PATH`` of ``env``) and arguments.
        env: Its whole environment.
        directory: Where it starts.
        limits: See ``apply_limits``.
        descriptors: Number in the program → descriptor here, which must be above every number used as a key.

    Raises:
        StartError: The directory or the program cannot be used.
    """
    failure_read, failure_write = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
    except OSError as error:
        os.close(failure_read)
        os.close(failure_write)
        raise StartError("fork", error.errno or 0) from error
    if pid == 0:
        step = "program"
        try:
            os.setsid()
            for number in (*_IGNORED_BY_PYTHON, *STANDARD_DEATHS):
                _signal.signal(number, _signal.SIG_DFL)
            for target, source in descriptors.items():
                os.dup2(source, target)
            apply_limits(limits)
            # What is to be executed is open to its user anyway; closed, the process could not write its own score.
            set_reachable(True)
            prefer_for_oom()
            step = "directory"
            os.chdir(directory)
            step = "program"
            _execute(list(argv), dict(env))
        except OSError as error:
            os.write(failure_write, f"{step} {error.errno or 0}".encode())
        except BaseException:
            os.write(failure_write, f"{step} 0".encode())
        finally:
            os._exit(127)
    os.close(failure_write)
    report = os.read(failure_read, 64)
    os.close(failure_read)
    if report:
        os.waitpid(pid, 0)
        step, number_text = report.decode("ascii").split(" ")
        raise StartError(step, int(number_text))
    return pid
