"""Records what real tools say about the programs beside this file: ``python -m tests.sandbox.diagnostics.record``.

Each recording is named after the tool, its version, the program and the stream, and holds the bytes as they came, but
for the directory the program lay in, which becomes ``WORKSPACE``. Python programs are kept with ``.txt`` at the end of
their names, because their faults would stop linters and type checkers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
RECORDED = HERE / "recorded"
WORKSPACE = "/sandbox/thread-1/run-1"

JAVAC = ("-encoding", "UTF-8", "-proc:none", "-Xlint:deprecation,removal,unchecked", "-Xmaxerrs", "250", "-d", "out")


def record(
    tool: str,
    version: str,
    case: str,
    commands: Sequence[Sequence[str]],
    *,
    suffix: str = "",
    env: Mapping[str, str] | None = None,
) -> None:
    """Runs commands in a copy of a program and stores what the last one printed."""
    with tempfile.TemporaryDirectory(prefix="uom-record-") as scratch:
        workspace = Path(scratch).resolve() / "workspace"
        for name, content in program_files(case).items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_bytes(content)
        environ = {"PATH": os.environ["PATH"], "HOME": scratch, "LANG": "C.UTF-8", "TMPDIR": scratch, **(env or {})}
        done: subprocess.CompletedProcess[bytes] | None = None
        for command in commands:
            done = subprocess.run(command, cwd=workspace, env=environ, capture_output=True, check=False)
        assert done is not None
        for stream, printed in (("stdout", done.stdout), ("stderr", done.stderr)):
            path = RECORDED / f"{tool}-{version}-{case.partition('-')[2]}{suffix}.{stream}.txt"
            path.unlink(missing_ok=True)
            if printed:
                path.write_bytes(printed.replace(str(workspace).encode(), WORKSPACE.encode()))
        print(f"{done.returncode:4} {tool} {version} {case}{suffix}")


def cases(tool: str) -> list[str]:
    return sorted(path.name for path in PROGRAMS.iterdir() if path.name.startswith(f"{tool}-"))


def program_files(case: str) -> dict[str, bytes]:
    """The files of a program as a caller would send them."""
    directory = PROGRAMS / case
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)).removesuffix(".txt" if ".py" in path.suffixes else ""): path.read_bytes()
        for path in paths
    }


def files(case: str, suffix: str) -> list[str]:
    return [path for path in program_files(case) if path.endswith(suffix)]


def java(home: Path) -> None:
    banner = subprocess.run([home / "bin/javac", "-version"], capture_output=True, text=True, check=True)
    version = banner.stdout.split()[1]
    compiler = str(home / "bin/javac")
    for case in cases("javac"):
        record("javac", version, case, [[compiler, *JAVAC, *files(case, ".java")]])
    options = {"JAVA_TOOL_OPTIONS": "-Dname=value"}
    case = "javac-missing-symbol"
    record("javac", version, case, [[compiler, *JAVAC, "Main.java"]], suffix="-tool-options", env=options)
    for case in cases("jvm"):
        sources = files(case, ".java")
        main = sources[0].removesuffix(".java").replace("/", ".")
        start = [str(home / "bin/java"), "-Xmx64m", "-XX:+UseSerialGC", "-cp", "out", main]
        record("jvm", version, case, [[compiler, *JAVAC, *sources], start])


def python(executable: Path) -> None:
    version = subprocess.run(
        [executable, "-c", "import platform; print(platform.python_version())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for case in cases("python"):
        program = ["-c", CHECK, *files(case, ".py")] if case == "python-syntax" else ["main.py"]
        record("python", version, case, [[str(executable), "-B", "-X", "utf8", *program]])


CHECK = """
import sys, traceback
for path in sys.argv[1:]:
    try:
        compile(open(path, 'rb').read(), path, 'exec')
    except SyntaxError as error:
        sys.stderr.writelines(traceback.format_exception_only(type(error), error))
"""


def dotnet(root: Path) -> None:
    host = str(root / "dotnet")
    version = subprocess.run([host, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    env = {
        "DOTNET_ROOT": str(root),
        "DOTNET_NOLOGO": "1",
        "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
        "DOTNET_SKIP_FIRST_TIME_EXPERIENCE": "1",
        "DOTNET_CLI_USE_MSBUILD_SERVER": "0",
        "MSBUILDDISABLENODEREUSE": "1",
        "DOTNET_GCHeapHardLimit": "0x8000000",
        "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
    }
    compiler = next((root / "sdk" / version).glob("Roslyn/bincore/csc.dll"))
    framework = sorted((root / "packs/Microsoft.NETCore.App.Ref").glob("*/ref/net*/"))[-1]
    references = [f"-r:{path}" for path in sorted(framework.glob("*.dll"))]
    runtime = sorted(path.name for path in (root / "shared/Microsoft.NETCore.App").iterdir())[-1]
    usings = "global using System; global using System.Collections.Generic; global using System.Threading.Tasks;"
    framework_name = {"name": "Microsoft.NETCore.App", "version": runtime}
    configuration = json.dumps({"runtimeOptions": {"tfm": "net10.0", "framework": framework_name}})
    flags = ["-noconfig", "-nologo", "-utf8output", "-nullable:enable", "-debug:embedded", "-out:app.dll", *references]
    for case in cases("csc") + cases("dotnet"):
        prepare = f"printf '%s' '{usings}' > Usings.cs; printf '%s' '{configuration}' > app.runtimeconfig.json"
        build = [host, "exec", str(compiler), *flags, *files(case, ".cs"), "Usings.cs"]
        commands: list[Sequence[str]] = [["sh", "-c", prepare], build]
        if case.startswith("dotnet-"):
            record("dotnet", runtime, case, [*commands, [host, "exec", "app.dll"]], env=env)
        else:
            record("csc", version, case, commands, env=env)
    nowhere = '<configuration><packageSources><clear/><add key="none" value="." /></packageSources></configuration>'
    for case in cases("msbuild"):
        prepare = f"printf '%s' '{nowhere}' > NuGet.Config"
        build = [host, "build", "-p:UseSharedCompilation=false", "-nodeReuse:false"]
        record("msbuild", version, case, [["sh", "-c", prepare], [*build, "-tl:off"]], env=env)
        record("msbuild", version, case, [["sh", "-c", prepare], [*build, "-tl:on"]], suffix="-terminal", env=env)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jdk", type=Path, action="append", default=[], help="a JDK's home; repeatable")
    parser.add_argument("--python", type=Path, action="append", default=[], help="an interpreter; repeatable")
    parser.add_argument("--dotnet", type=Path, action="append", default=[], help="the root of a .NET SDK; repeatable")
    chosen = parser.parse_args()
    RECORDED.mkdir(exist_ok=True)
    for home in chosen.jdk:
        java(home)
    for executable in chosen.python:
        python(executable)
    for root in chosen.dotnet:
        dotnet(root)


if __name__ == "__main__":
    main()
