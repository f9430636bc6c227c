"""Whatever state a sandbox is in, end with a started one.

A loop reads the state, looks up what to do (``sandbox_states``), does it, and reads again. Nothing is concluded from
how a call ended: a create that timed out, lost its answer or met a 409 is followed by a reading like any other, so two
callers racing for a name both end with the same sandbox.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from daytona import CreateSandboxFromSnapshotParams, SandboxState

from sandbox.errors import (
    BadRequestError,
    CapacityError,
    RetryClass,
    SandboxError,
    SandboxLostError,
    SandboxSpoiltError,
    WaitTimeoutError,
)
from sandbox.faults import fault, is_conflict, is_missing, translated
from sandbox.heartbeat import Heartbeat
from sandbox.leases import new_lease
from sandbox.naming import LEASE_END, SNAPSHOT_ID
from sandbox.network_policy import NetworkPolicy
from sandbox.platform_api import bounded
from sandbox.retry import ATTEMPTS, Deadline, Pace, delay_before_retry, read_patiently, told_wait
from sandbox.sandbox_states import ABSENT, CREATE_SECONDS, STATES, Action, sandbox_state

if TYPE_CHECKING:
    from daytona import AsyncDaytona, AsyncSandbox

    from sandbox.events import EventStream
    from sandbox.models import Isolation, SnapshotIdentity
    from sandbox.profiles import Profile

logger = logging.getLogger(__name__)

STEP: Final = "reconcile_sandbox"
RECONCILE_SECONDS: Final = 3600.0
ZOMBIE_PAUSE_SECONDS: Final = 5.0
"""Shortest pause between the removal of a failed sandbox and the making of its successor."""

_ROUNDS: Final = 40
_REPLACEMENTS: Final = 3
_Locks = weakref.WeakValueDictionary[str, asyncio.Lock]
_locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Locks] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The sandbox to end with.

    Attributes:
        name: Its name.
        profile: Limits, intervals and network policy.
        isolation: Who shares it; a sandbox of one run is ephemeral.
        snapshot: What it is made from.
        labels: Labels of a new one, besides its lease.
        lifetime_minutes: A new one is destroyed after so many minutes at the latest; ``None`` sets no end.
        policy: Its network policy; ``None`` takes the profile's.
    """

    name: str
    profile: Profile
    isolation: Isolation
    snapshot: SnapshotIdentity
    labels: Mapping[str, str]
    lifetime_minutes: int | None = None
    policy: NetworkPolicy | None = None


class Lifecycle:
    """Brings one sandbox to life and keeps it there.

    Args:
        client: The platform.
        wanted: The sandbox to end with.
        events: Told of every state seen.
        recoveries: Gets a sentence for whatever had to be recovered.
        in_use: Whether runs of this process use the sandbox now.
        zombie_pause: Instead of ``ZOMBIE_PAUSE_SECONDS``.
    """

    def __init__(
        self,
        client: AsyncDaytona,
        wanted: Wanted,
        *,
        events: EventStream,
        recoveries: list[str],
        in_use: Callable[[], bool] = lambda: False,
        zombie_pause: float | None = None,
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._events = events
        self._recoveries = recoveries
        self._in_use = in_use
        self._zombie_pause = ZOMBIE_PAUSE_SECONDS if zombie_pause is None else zombie_pause
        self._policy = wanted.policy or NetworkPolicy.of(wanted.profile.network)
        self._restarted = False
        self._recovered = False
        self._replacements = 0
        self._setbacks = 0

    async def reconcile(self) -> AsyncSandbox:
        """Ends with a started sandbox.

        Raises:
            WaitTimeoutError: A state did not change in time; the text tells the story of the wait.
            CapacityError: The platform has no room.
            SandboxError: What the platform answered otherwise, after the attempts its class allows.
        """
        name = self._wanted.name
        async with Heartbeat(self._events, subject="sandbox", name=name, limit=RECONCILE_SECONDS) as beat:
            lock = _locks.setdefault(asyncio.get_running_loop(), weakref.WeakValueDictionary()).setdefault(
                f"{self._client._api_url}\n{name}", asyncio.Lock()
            )
            if lock.locked():
                beat.saw("waiting for another run that prepares it")
            try:
                async with asyncio.timeout(beat.deadline.remaining):
                    await lock.acquire()
            except TimeoutError:
                raise beat.timed_out(step=STEP, wanted=SandboxState.STARTED.value) from None
            try:
                return await self._rounds(beat)
            finally:
                lock.release()

    async def heal(self, error: SandboxError) -> AsyncSandbox:
        """The sandbox does not answer: restarts it once, then replaces it; ends with a started one.

        One that is spoilt is replaced at once.

        Args:
            error: How the fault showed.
        """
        name = self._wanted.name
        async with Heartbeat(self._events, subject="sandbox", name=name, limit=RECONCILE_SECONDS) as beat:
            await self._heal(error, beat)
        return await self.reconcile()

    async def _heal(self, error: SandboxError, beat: Heartbeat) -> None:
        sandbox = await read_patiently(self._read, deadline=beat.deadline)
        beat.saw("absent" if sandbox is None else sandbox_state(sandbox.state).value)
        if sandbox is None:
            self._recoveries.append(f"The sandbox {self._wanted.name} had vanished; it was made again.")
        elif sandbox_state(sandbox.state) is SandboxState.STARTED:
            if isinstance(error, SandboxSpoiltError):
                await self._replace(sandbox, f"was spoilt ({error.message})", zombie=False)
            elif self._restarted:
                await self._replace(sandbox, f"did not answer after a restart ({error.message})")
            else:
                self._restarted = True
                self._recoveries.append(f"The sandbox {self._wanted.name} did not answer; it was restarted.")
                await self._try(sandbox.stop(timeout=60, force=True))

    async def lost(self, error: SandboxError) -> SandboxError:
        """Returns what a fault during a run means: the loss of the sandbox with its last state, or the fault itself."""
        if isinstance(error, SandboxSpoiltError):
            return error
        try:
            sandbox = await self._read()
        except SandboxError:
            return error
        if sandbox is None:
            return SandboxLostError(
                f"the sandbox vanished while it was needed ({error.message})", sandbox=self._wanted.name, state="absent"
            )
        state = sandbox_state(sandbox.state)
        if state is SandboxState.STARTED and not isinstance(error, SandboxLostError):
            return error
        reason = f": {sandbox.error_reason}" if sandbox.error_reason else ""
        return SandboxLostError(
            f"the sandbox stopped answering while it was needed ({error.message}){reason}",
            sandbox=self._wanted.name,
            state=state.value,
        )

    async def _rounds(self, beat: Heartbeat) -> AsyncSandbox:
        stay = Deadline(None)
        seen: SandboxState | None = None
        sandbox: AsyncSandbox | None = None
        taken = Pace(0.02, longest=2.0)
        for _ in range(_ROUNDS):
            sandbox = await read_patiently(self._read, deadline=beat.deadline)
            state = None if sandbox is None else sandbox_state(sandbox.state)
            row = ABSENT if state is None else STATES[state]
            beat.saw("absent" if state is None else state.value)
            if state is not seen or row.action not in (Action.WAIT, Action.WAIT_GONE, Action.READ_AGAIN):
                seen, stay = state, Deadline(row.seconds)
            if sandbox is None or row.action is Action.CREATE:
                created = await self._create(beat)
                if created is not None and sandbox_state(created.state) is SandboxState.STARTED:
                    beat.saw(SandboxState.STARTED.value)
                    return created
                # The name may be taken by one that cannot be seen yet, or is not quite gone.
                await asyncio.sleep(beat.deadline.capped(taken.next()))
                continue
            match row.action:
                case Action.USE:
                    if await self._usable(sandbox):
                        return sandbox
                case Action.START:
                    await self._start(sandbox, row.seconds, beat)
                case Action.WAIT | Action.WAIT_GONE | Action.READ_AGAIN:
                    if not await self._leaves(sandbox, beat, stay):
                        await self._stuck(sandbox, row.action, beat)
                case Action.REVIVE:
                    await self._revive(sandbox, row.seconds)
        raise beat.timed_out(step=STEP, wanted=SandboxState.STARTED.value)

    async def _read(self) -> AsyncSandbox | None:
        try:
            return await bounded(self._client.get(self._wanted.name))
        except Exception as error:
            if is_missing(error):
                return None
            with translated(STEP, sandbox=self._wanted.name):
                raise

    async def _create(self, beat: Heartbeat) -> AsyncSandbox | None:
        """Makes a new one; ``None`` when the next reading must tell what became of it."""
        wanted = self._wanted
        single = wanted.isolation == "run"
        stop, delete = wanted.profile.auto_stop_minutes, 0 if single else wanted.profile.auto_delete_minutes
        lease = new_lease(wanted.isolation, auto_stop_minutes=stop, auto_delete_minutes=delete)
        params = CreateSandboxFromSnapshotParams(
            name=wanted.name,
            snapshot=wanted.snapshot.snapshot_name,
            labels={**wanted.labels, LEASE_END: lease},
            auto_stop_interval=stop,
            auto_delete_interval=delete,
            ttl_minutes=wanted.lifetime_minutes,
            network_block_all=self._policy.block_all,
            network_allow_list=self._policy.cidrs or None,
            domain_allow_list=self._policy.domains or None,
        )
        try:
            return await self._client.create(params, timeout=CREATE_SECONDS)
        except Exception as error:
            if is_conflict(error):
                return None
            await self._setback(error, beat, must_exist=True)
            return None

    async def _start(self, sandbox: AsyncSandbox, seconds: float, beat: Heartbeat) -> None:
        state = sandbox_state(sandbox.state)
        if self._stale(sandbox):
            await self._replace(sandbox, "was made from a former snapshot", zombie=False)
            return
        try:
            await sandbox.start(timeout=seconds)
        except Exception as error:
            await self._setback(error, beat)
        else:
            self._recoveries.append(f"The sandbox {self._wanted.name} was {state.value}; it was started again.")

    async def _setback(self, error: Exception, beat: Heartbeat, *, must_exist: bool = False) -> None:
        """An action failed: waits as its class says, or raises when another attempt cannot help."""
        meant = fault(error, step=STEP, sandbox=self._wanted.name, state=beat.state)
        if meant is None:
            raise error
        self._setbacks += 1
        if isinstance(meant, WaitTimeoutError) and self._setbacks < ATTEMPTS:
            return
        delay = delay_before_retry(meant, attempt=self._setbacks)
        refused = isinstance(meant, BadRequestError) and self._setbacks < ATTEMPTS
        if refused and (not must_exist or await self._read() is not None):
            # Refused because of a state that has changed meanwhile, or a sandbox that failed while it started: its new
            # state decides.
            return
        if delay is None or self._setbacks >= ATTEMPTS:
            raise meant from error
        logger.warning("%s; next attempt in %.0f s", meant, delay)
        await asyncio.sleep(beat.deadline.capped(delay))

    async def _leaves(self, sandbox: AsyncSandbox, beat: Heartbeat, stay: Deadline) -> bool:
        """Waits until the state changes; False when it has not within ``stay``."""
        before = sandbox_state(sandbox.state)
        pace = Pace(0.02, longest=1.0)
        while not stay.expired and not beat.deadline.expired:
            pause = Deadline(stay.capped(pace.next()))
            # The platform's live events change ``sandbox.state`` between two reads; the SDK has no public way to await
            # any change, so the attribute is looked at in small steps.
            while not pause.expired and sandbox_state(sandbox.state) is before:  # noqa: ASYNC110
                await asyncio.sleep(pause.capped(0.05))
            if sandbox_state(sandbox.state) is not before:
                return True
            try:
                await sandbox.refresh_data(request_timeout=30)
            except Exception as error:
                if is_missing(error):
                    return True
                meant = fault(error, step=STEP, sandbox=self._wanted.name, state=before.value)
                if meant is None or meant.retry is RetryClass.NEVER:
                    raise meant or error from error
                await asyncio.sleep(min(told_wait(meant), stay.remaining, beat.deadline.remaining))
            beat.saw(sandbox_state(sandbox.state).value)
            if sandbox_state(sandbox.state) is not before:
                return True
        return False

    async def _stuck(self, sandbox: AsyncSandbox, action: Action, beat: Heartbeat) -> None:
        state = sandbox_state(sandbox.state)
        if state is SandboxState.PENDING_BUILD:
            raise CapacityError(
                "no runner became free", step=STEP, sandbox=self._wanted.name, state=SandboxState.PENDING_BUILD.value
            )
        if action is Action.WAIT_GONE or beat.deadline.expired:
            raise beat.timed_out(step=STEP, wanted="gone" if action is Action.WAIT_GONE else "started")
        await self._replace(sandbox, f"was stuck in state {state.value}")

    async def _revive(self, sandbox: AsyncSandbox, seconds: float) -> None:
        state = sandbox_state(sandbox.state).value
        reason = sandbox.error_reason or "no reason given"
        if sandbox.recoverable and not self._recovered:
            self._recovered = True
            if await self._try(sandbox.recover(timeout=seconds)):
                self._recoveries.append(
                    f"The sandbox {self._wanted.name} was in state {state} ({reason}); it was recovered."
                )
                return
        await self._replace(sandbox, f"was in state {state} ({reason})")

    async def _replace(self, sandbox: AsyncSandbox, why: str, *, zombie: bool = True) -> None:
        """Removes a sandbox and waits until its name is free; the next round makes the successor."""
        name = self._wanted.name
        if self._replacements >= _REPLACEMENTS:
            raise SandboxLostError(
                f"the sandbox {why} again after {_REPLACEMENTS} replacements",
                step=STEP,
                sandbox=name,
                state=sandbox_state(sandbox.state).value,
            )
        self._replacements += 1
        pause = Deadline(self._zombie_pause if zombie else 0.0)
        await self._try(sandbox.delete(timeout=60))
        gone = Deadline(STATES[SandboxState.DESTROYING].seconds)
        pace = Pace(0.02, longest=1.0)
        while (found := await self._read()) is not None and found.id == sandbox.id:
            if gone.expired:
                raise WaitTimeoutError(
                    f"the sandbox was deleted and is not gone after {gone.elapsed:.0f} s",
                    step=STEP,
                    sandbox=name,
                    state=sandbox_state(found.state).value,
                )
            await asyncio.sleep(gone.capped(pace.next()))
        self._recoveries.append(f"The sandbox {name} {why}; it was replaced.")
        await asyncio.sleep(pause.remaining)

    async def _usable(self, sandbox: AsyncSandbox) -> bool:
        """True if a started sandbox may be used; one that may not has been replaced."""
        if self._stale(sandbox):
            if self._in_use() or await self._has_running_commands(sandbox):
                self._recoveries.append(
                    f"The sandbox {self._wanted.name} stands on a former snapshot and is busy; it was used as it is."
                )
            else:
                await self._replace(sandbox, "was made from a former snapshot", zombie=False)
                return False
        if not self._policy.holds_for(sandbox):
            with translated(STEP, sandbox=self._wanted.name):
                await bounded(self._policy.apply_to(sandbox))
            self._recoveries.append(f"The network policy of the sandbox {self._wanted.name} was set anew.")
        return True

    def _stale(self, sandbox: AsyncSandbox) -> bool:
        made_from = sandbox.labels.get(SNAPSHOT_ID)
        # Without our label somebody else made it, or an older system of the same name: its snapshot's name must do.
        return made_from is not None and made_from != self._wanted.snapshot.snapshot_id

    async def _has_running_commands(self, sandbox: AsyncSandbox) -> bool:
        try:
            sessions = await bounded(sandbox.process.list_sessions())
        except Exception as error:
            if fault(error, step=STEP, toolbox=True) is None:
                raise
            return False
        return any(command.exit_code is None for session in sessions for command in session.commands)

    async def _try(self, call: object) -> bool:
        """Awaits a call whose effect the next reading will show; False when it failed."""
        try:
            await call  # type: ignore[misc]
        except Exception as error:
            meant = fault(error, step=STEP, sandbox=self._wanted.name)
            harmless = isinstance(meant, (BadRequestError, WaitTimeoutError))
            if meant is None or (meant.retry is RetryClass.NEVER and not harmless):
                raise meant or error from error
            logger.info("%s", meant)
            return False
        return True
