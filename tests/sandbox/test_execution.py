"""What happens to a program between its upload and its verdict, on the real platform."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest
from daytona import AsyncDaytona
from pydantic import SecretStr

from sandbox.errors import ConfigurationError
from sandbox.models import Outcome, RunLimits, ValidationResult
from tests.sandbox.shell_profile import Recorded, shell_profile, validate


async def test_a_program_passes_and_its_output_arrives_in_both_streams(daytona: AsyncDaytona) -> None:
    sink = Recorded()
    text = "žluťoučký 日本語 😀"
    profile = shell_profile(f"printf '{text}'; printf 'err {text}\\n' >&2", "echo two")
    result = await validate(daytona, profile, sink=sink)
    assert result.outcome is Outcome.PASSED, result
    assert [phase.name for phase in result.phases] == ["one", "two"]
    assert result.phases[0].stdout.text == text
    assert result.phases[0].stderr.text == f"err {text}\n"
    assert result.phases[1].stdout.text == "two\n"
    assert sink.text("shell_sandbox_command_execution_stdout") == f"{text}two\n"
    assert sink.text("shell_sandbox_command_execution_stderr") == f"err {text}\n"
    assert [event["seq"] for event in sink.events] == list(range(1, len(sink.events) + 1))
    assert sink.types()[-1] == "outcome"
    assert result.timings.total > 0
    assert result.sandbox is not None
    assert result.sandbox.sandbox_name == "validation-sandbox-shell-sandbox"


async def test_the_order_of_each_stream_is_kept(daytona: AsyncDaytona) -> None:
    profile = shell_profile("i=0; while [ $i -lt 1000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done")
    phase = (await validate(daytona, profile)).phases[0]
    assert phase.stdout.text == "".join(f"out {number}\n" for number in range(1000))
    assert phase.stderr.text == "".join(f"err {number}\n" for number in range(1000))


async def test_phases_find_their_variables(daytona: AsyncDaytona) -> None:
    profile = shell_profile(
        "pwd; env; ls -A; ls -A $UOM_RESULTS_DIR; test -d $UOM_BUILD_DIR && test -w $HOME && test -w $TMPDIR && umask"
    )
    result = await validate(daytona, profile, thread_id="thread-x", run_id=uuid.uuid4().hex)
    assert result.outcome is Outcome.PASSED, result
    lines = result.phases[0].stdout.text.splitlines()
    seen = dict(line.split("=", 1) for line in lines if "=" in line)
    workspace = f"/sandbox/thread-x/{result.run_id}"
    assert lines[0] == workspace
    assert lines[-1] == "0022"
    assert seen["UOM_WORKSPACE"] == workspace
    assert seen["UOM_ENTRY_POINT"] == "main.sh"
    assert seen["UOM_BUILD_DIR"] == f"{workspace}/.uom/build"
    assert seen["UOM_RESULTS_DIR"] == f"{workspace}/results"
    for name in ("UOM_RESULT_FILE", "EFCORE_RESULTS_PATH", "DAPPER_RESULTS_PATH", "NHIBERNATE_RESULTS_PATH"):
        assert seen[name] == f"{workspace}/results/result.json"
    assert seen["MONGO_RESULTS_PATH"] == seen["NEO4J_RESULTS_PATH"] == seen["UOM_RESULT_FILE"]
    assert seen["UOM_MEMORY_MIB"] == "256"
    assert seen["UOM_HEAP_MIB"] == "192"
    assert seen["UOM_CPU"] == "1"
    assert seen["FROM_TEMPLATE"] == "yes"
    assert seen["HOME"].startswith(workspace)
    assert len(seen["TMPDIR"]) < 30


async def test_environment_and_secrets_arrive_unchanged_and_secrets_show_nowhere(daytona: AsyncDaytona) -> None:
    values = {"A": 'it\'s "quoted" $HOME `id` \\n', "B": "two\nlines\n.\n", "C": "", "D": "žluť 😀", "E": " x "}
    secret = "s3cr3t'\"$x\nline-two"
    sink = Recorded()
    profile = shell_profile(
        'for name in A B C D E S; do eval "printf \'%s|\' \\"\\$$name\\""; done',
        """grep -la 's3c[r]3t' /proc/[0-9]*/cmdline; grep -rl 's3c[r]3t' /sandbox /tmp; echo "$S\"""",
    )
    result = await validate(daytona, profile, sink=sink, environment=values, secrets={"S": SecretStr(secret)})
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[0].stdout.text == "|".join([*values.values(), "•••"]) + "|"
    assert result.phases[1].stdout.text == "•••\n"
    assert "s3cr3t" not in result.model_dump_json()
    assert "s3cr3t" not in json.dumps(sink.events)


async def test_a_variable_may_have_any_name_and_changes_the_program_only(daytona: AsyncDaytona) -> None:
    names = ("command", "limit", "grace", "input", "workspace", "phase", "limiter", "nl", "line", "results", "values")
    values = dict.fromkeys(names, "/nowhere\n2") | {"PATH": "/nowhere", "IFS": "/", "CDPATH": "/tmp"}
    profile = shell_profile("/bin/cat; " + "".join(f'printf "%s|" "${name}"; ' for name in names) + "pwd")
    result = await validate(daytona, profile, environment=values, stdin="given ")
    assert result.outcome is Outcome.PASSED, result
    workspace = f"/sandbox/{result.thread_id}/{result.run_id}"
    assert result.phases[0].stdout.text == "given " + "/nowhere\n2|" * len(names) + f"{workspace}\n"


async def test_standard_input_is_empty_or_what_was_given_to_the_last_phase(daytona: AsyncDaytona) -> None:
    profile = shell_profile("cat; echo end", "cat; echo end")
    assert [phase.stdout.text for phase in (await validate(daytona, profile)).phases] == ["end\n", "end\n"]
    result = await validate(daytona, profile, stdin="first\nž")
    assert [phase.stdout.text for phase in result.phases] == ["end\n", "first\nžend\n"]


@pytest.mark.parametrize(
    ("command", "code", "outcome"),
    [
        ("exit 7", 7, Outcome.RUNTIME_ERROR),
        ("exec sh -c 'exit 8'", 8, Outcome.RUNTIME_ERROR),
        ("set -e; false; echo no", 1, Outcome.RUNTIME_ERROR),
        ("echo 'unclosed", 2, Outcome.RUNTIME_ERROR),
        ("kill -TERM $$", 143, Outcome.RUNTIME_ERROR),
        ("kill -9 $$", 137, Outcome.RUNTIME_ERROR),
        ("exit 124", 124, Outcome.RUNTIME_ERROR),
        ("exit 127", 127, Outcome.RUNTIME_ERROR),
        ("nosuchtool --version", 127, Outcome.TOOL_MISSING),
        ("exec nosuchtool", 127, Outcome.TOOL_MISSING),
        ("exec /tmp", 126, Outcome.TOOL_MISSING),
        ("/tmp", 126, Outcome.TOOL_MISSING),
        ("exit 255", 255, Outcome.RUNTIME_ERROR),
        ("set -u; echo $nothing", 2, Outcome.RUNTIME_ERROR),
        ('eval "echo \'unclosed"', 2, Outcome.RUNTIME_ERROR),
        ("cat <<END\ntext\nEND\nexit 5", 5, Outcome.RUNTIME_ERROR),
        ("cat <<END; exit 6\nnever closed", 6, Outcome.RUNTIME_ERROR),
        ("trap 'exit 44' TERM; kill -TERM $$", 44, Outcome.RUNTIME_ERROR),
        ("sh -c 'kill -SEGV $$'", 139, Outcome.RUNTIME_ERROR),
        ("kill -PIPE $$", 141, Outcome.RUNTIME_ERROR),
        ("kill -9 $PPID; sleep 60", 137, Outcome.RUNTIME_ERROR),
        ("kill -9 0", 137, Outcome.RUNTIME_ERROR),
        ("sleep 60 & exit 11", 11, Outcome.RUNTIME_ERROR),
        ("setsid sleep 60 & exec 1>&- 2>&-; exit 12", 12, Outcome.RUNTIME_ERROR),
        ("setsid sleep 60 & kill -9 $$", 137, Outcome.RUNTIME_ERROR),
        (": > tool; ./tool", 126, Outcome.TOOL_MISSING),
        ("echo 'java.lang.OutOfMemoryError: Java heap space' >&2; exit 1", 1, Outcome.MEMORY_EXCEEDED),
    ],
)
async def test_exit_codes_are_true_and_the_next_run_works(
    daytona: AsyncDaytona, command: str, code: int, outcome: Outcome
) -> None:
    result = await validate(daytona, shell_profile(command, "echo never"))
    assert result.outcome is outcome, result
    assert [phase.exit_code for phase in result.phases] == [code]
    assert result.phases[0].signal == (code - 128 if 128 < code < 193 else None)
    assert (await validate(daytona, shell_profile("true"))).passed


async def test_a_missing_tool_is_named_with_its_snapshot(daytona: AsyncDaytona) -> None:
    result = await validate(daytona, shell_profile("mvn-that-is-not-there package"))
    assert "'mvn-that-is-not-there'" in result.message
    assert "validation-snapshot-shell-sandbox" in result.message


async def test_a_program_that_never_ends_times_out_and_leaves_nothing(daytona: AsyncDaytona) -> None:
    profile = shell_profile("echo begun; setsid sleep 4711 & sleep 4711")
    result = await validate(daytona, profile, limits=RunLimits(phase_seconds={"one": 0.5}))
    assert result.outcome is Outcome.TIMEOUT, result
    assert result.phases[0].stdout.text == "begun\n"
    assert "0.5 s" in result.message
    check = await validate(
        daytona, shell_profile("pgrep -af '[4]711' || cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep '[4]711'; true")
    )
    assert check.phases[0].stdout.text == ""


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM INT; echo deaf; while :; do sleep 1; done",
        "kill -STOP 0",
        "echo x; kill -STOP $PPID; sleep 60",
    ],
)
async def test_a_program_that_defies_its_end_is_ended(daytona: AsyncDaytona, command: str) -> None:
    result = await validate(daytona, shell_profile(command), limits=RunLimits(total_seconds=0.5))
    assert result.outcome is Outcome.TIMEOUT, result
    assert (await validate(daytona, shell_profile("true"))).passed


async def test_the_total_limit_counts_over_the_phases(daytona: AsyncDaytona) -> None:
    result = await validate(daytona, shell_profile("sleep 0.4", "sleep 30"), limits=RunLimits(total_seconds=0.8))
    assert [phase.outcome for phase in result.phases] == [Outcome.PASSED, Outcome.TIMEOUT]


async def test_a_silent_program_is_stalled_when_silence_is_limited(daytona: AsyncDaytona) -> None:
    profile = shell_profile("echo hello; sleep 60")
    result = await validate(daytona, profile, limits=RunLimits(no_output_seconds=0.4))
    assert result.outcome is Outcome.STALLED, result
    assert result.phases[0].stdout.text == "hello\n"


async def test_a_program_that_prints_now_and_then_is_not_stalled(daytona: AsyncDaytona) -> None:
    profile = shell_profile("for word in a b c d; do printf $word; sleep 0.7; done")
    result = await validate(daytona, profile, limits=RunLimits(no_output_seconds=2))
    assert result.outcome is Outcome.PASSED, result


async def test_a_flood_is_cut_and_what_was_printed_is_kept(daytona: AsyncDaytona) -> None:
    result = await validate(daytona, shell_profile("yes flood"), limits=RunLimits(output_bytes=200_000))
    assert result.outcome is Outcome.OUTPUT_EXCEEDED, result
    assert result.phases[0].stdout.total_bytes > 200_000
    assert result.phases[0].stdout.text.startswith("flood\nflood\n")
    assert (await validate(daytona, shell_profile("pgrep -x yes; true"))).phases[0].stdout.text == ""


async def test_left_overs_do_not_hold_the_phase_and_are_ended(daytona: AsyncDaytona) -> None:
    profile = shell_profile("sleep 4812 & setsid sleep 4812 & echo done", "pgrep -af '[4]812'; true")
    result = await validate(daytona, profile)
    assert [phase.stdout.text for phase in result.phases] == ["done\n", ""]
    assert result.phases[0].seconds < 10


async def test_a_program_that_kills_all_it_can_is_the_programs_failure(daytona: AsyncDaytona) -> None:
    result = await validate(daytona, shell_profile("echo x; kill -9 -1"))
    assert result.outcome in (Outcome.RUNTIME_ERROR, Outcome.TIMEOUT), result
    assert result.phases[0].exit_code != 0
    assert "usual reason" not in result.message
    assert (await validate(daytona, shell_profile("true"))).passed


async def test_a_program_that_takes_all_memory_is_told_so(daytona: AsyncDaytona) -> None:
    result = await validate(daytona, shell_profile("tail /dev/zero"))
    assert result.outcome is Outcome.MEMORY_EXCEEDED, result
    assert "1024 MiB" in result.message
    assert result.phases[0].signal == 9


async def test_a_program_that_locks_the_temporary_directory_spoils_no_later_run(daytona: AsyncDaytona) -> None:
    locking = shell_profile("chmod 000 /tmp", type="locking-sandbox")
    assert (await validate(daytona, locking)).passed
    after = await validate(
        daytona, shell_profile("echo fine >$TMPDIR/file && cat $TMPDIR/file", type="locking-sandbox")
    )
    assert after.passed, after
    assert after.phases[0].stdout.text == "fine\n"
    assert "it takes no files" in " ".join(after.recoveries)
    await daytona.delete(await daytona.get(locking.sandbox_name))


async def test_a_program_that_fills_the_disk_spoils_no_later_run(daytona: AsyncDaytona) -> None:
    full = await validate(
        daytona,
        shell_profile("for i in $(seq 40); do head -c 100M /dev/zero >> /sandbox/fill; sleep 0.1; done; sleep 9"),
    )
    assert full.outcome is Outcome.RUNTIME_ERROR, full
    assert "disk" in full.message
    after = await validate(daytona, shell_profile("test ! -e /sandbox/fill"))
    assert after.passed, after


async def test_a_disk_filled_by_another_run_is_not_the_programs_failure(daytona: AsyncDaytona) -> None:
    profile = shell_profile("sleep 0.5; echo fine > mine; cat mine; sleep 1")
    assert (await validate(daytona, profile)).passed
    sandbox = await daytona.get(profile.sandbox_name)
    await sandbox.process.exec("head -c 1300M /dev/zero > /sandbox/fill; sleep 2")
    result = await validate(daytona, shell_profile("head -c 9M /dev/zero > mine; sleep 1; echo fine"))
    assert result.passed, result
    assert any("disk" in sentence for sentence in result.recoveries)


async def test_twenty_validations_share_one_sandbox(daytona: AsyncDaytona) -> None:
    profile = shell_profile('echo "$WHO" > mine; sleep 0.05; cat mine', type="twenty-sandbox", parallel=3)
    results = await asyncio.gather(
        *(validate(daytona, profile, environment={"WHO": str(number)}) for number in range(20))
    )
    assert [result.phases[0].stdout.text for result in results] == [f"{number}\n" for number in range(20)]
    assert len({result.sandbox.sandbox_id for result in results if result.sandbox}) == 1


@pytest.mark.parametrize("isolation", ["run", "thread"])
async def test_isolation_decides_who_shares_the_sandbox(daytona: AsyncDaytona, isolation: str) -> None:
    first = await validate(daytona, shell_profile("true"), isolation=isolation, thread_id="thread-i")
    second = await validate(daytona, shell_profile("true"), isolation=isolation, thread_id="thread-i")
    assert first.sandbox is not None
    assert second.sandbox is not None
    assert (first.sandbox.sandbox_id == second.sandbox.sandbox_id) == (isolation == "thread")
    names = [sandbox.name async for sandbox in daytona.list()]
    expected = "validation-sandbox-shell-sandbox-thread-i" if isolation == "thread" else first.sandbox.sandbox_name
    assert (expected in names) == (isolation == "thread")
    if isolation == "thread":
        await daytona.delete(await daytona.get(expected))


async def test_a_cancelled_run_leaves_no_session_and_no_process(daytona: AsyncDaytona) -> None:
    sink = Recorded()
    profile = shell_profile("echo begun; sleep 4913")
    run = asyncio.create_task(validate(daytona, profile, sink=sink))
    await sink.until("begun\n")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    sandbox = await daytona.get(profile.sandbox_name)
    assert await sandbox.process.list_sessions() == []
    check = await validate(daytona, shell_profile("pgrep -af '[4]913'; true"))
    assert check.phases[0].stdout.text == ""


@pytest.mark.parametrize(
    ("paths", "program"),
    [
        (["only.sh"], "only.sh"),
        (["a.sh", "main.sh"], "main.sh"),
        (["src/main.sh", "src/a.sh", "notes.txt"], "src/main.sh"),
        (["main.sh", "src/main.sh"], "main.sh"),
    ],
)
async def test_the_program_is_the_only_file_or_the_one_called_as_in_the_template(
    daytona: AsyncDaytona, paths: list[str], program: str
) -> None:
    files = dict.fromkeys(paths, "")
    result = await validate(daytona, shell_profile('printf "$UOM_ENTRY_POINT"'), files=files)
    assert result.phases[0].stdout.text == program


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"files": {"a.txt": ""}}, "files"),
        ({"files": {"a.sh": "", "b.sh": ""}}, "entry_point"),
        ({"files": {"a/main.sh": "", "b/main.sh": ""}}, "entry_point"),
        ({"files": {"main.sh": ""}, "entry_point": "other.sh"}, "entry_point"),
        ({"files": {"main.sh": "", "results/x": ""}}, "files"),
        ({"files": {"main.sh": "", ".uom/phase.sh": ""}}, "files"),
        ({"limits": RunLimits(phase_seconds={"none": 1})}, "limits.phase_seconds"),
        ({"framework": "none"}, "framework"),
    ],
)
async def test_a_request_that_does_not_fit_names_its_field(
    daytona: AsyncDaytona, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await validate(daytona, shell_profile("true"), **fields)
    assert caught.value.field == named


@pytest.mark.parametrize(
    "daemon",
    [
        "setsid env -i sleep 4913 &",
        "setsid env -i sleep 4913 >/dev/null &",
        "exec 7>&1; setsid env -i sleep 4913 >/dev/null 2>&1 & exec 7>&-",
    ],
    ids=["both streams", "standard error", "a copy"],
)
async def test_a_daemon_that_hides_and_holds_the_output_delays_nothing(daytona: AsyncDaytona, daemon: str) -> None:
    profile = shell_profile(f"{daemon}\necho done", "pgrep -af '[4]913'; true")
    result = await validate(daytona, profile, limits=RunLimits(total_seconds=20))
    assert result.passed, result.message
    assert [phase.stdout.text for phase in result.phases] == ["done\n", ""]


async def test_two_runs_with_one_id_do_not_meet(daytona: AsyncDaytona) -> None:
    profile = shell_profile("sleep 0.5")
    runs = (validate(daytona, profile, thread_id="twins", run_id="twin") for _ in range(2))
    first, second = await asyncio.gather(*runs, return_exceptions=True)
    passed, refused = (first, second) if isinstance(second, BaseException) else (second, first)
    assert isinstance(passed, ValidationResult)
    assert passed.passed
    assert isinstance(refused, ConfigurationError)
    assert "run_id" in str(refused)
    assert (await validate(daytona, profile, thread_id="twins", run_id="twin")).passed, "afterwards it is free again"
