"""Records what real tools say about the programs beside this file: ``python -m tests.sandbox.diagnostics.record``.

Each recording is named after the tool, its version, the program and the stream, and holds the bytes as they came, but
for the directory the program lay in, which becomes ``WORKSPACE``, and the host of Maven's repository. Python programs
are kept with ``.txt`` at the end of their names, because their faults would stop linters and type checkers.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
RECORDED = HERE / "recorded"
WORKSPACE = "/sandbox/thread-1/run-1"

_REPOSITORY = re.compile(rb"\(https?://([^\s()/]+)/maven2\)")
MAVEN = ("-B", "-ntp", "-Dstyle.color=never", "-Dmaven.compiler.showDeprecation=true")
BUILTIN = HERE.parent.parent.parent / "sandbox/builtin"
TEMPLATES = BUILTIN / "java"
SILENT_PORT = 6543
"""Stands in recordings for the port of a server that takes connections and says nothing."""

NO_NETWORK = ("unshare", "-rn")
"""Starts a program where there is no network."""

JAVAC = ("-encoding", "UTF-8", "-proc:none", "-Xlint:deprecation,removal,unchecked", "-Xmaxerrs", "250", "-d", "out")


def record(
    tool: str,
    version: str,
    case: str,
    commands: Sequence[Sequence[str]],
    *,
    suffix: str = "",
    env: Mapping[str, str] | None = None,
    replaced: Mapping[str, str] | None = None,
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
                told = printed.replace(str(workspace).encode(), WORKSPACE.encode())
                for host in set(_REPOSITORY.findall(told)):
                    told = told.replace(host, b"repository.example")
                for old, new in (replaced or {}).items():
                    told = told.replace(old.encode(), new.encode())
                path.write_bytes(told)
        print(f"{done.returncode:4} {tool} {version} {case}{suffix}")


def cases(tool: str) -> list[str]:
    return sorted(path.name for path in PROGRAMS.iterdir() if path.name.startswith(f"{tool}-"))


def started(case: str, *command: str) -> list[str]:
    """The command that starts a program: without a network where that is what the recording is about."""
    return [*(NO_NETWORK if "-no-network" in case else ()), *command]


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
        record("jvm", version, case, [[compiler, *JAVAC, *sources], started(case, *start)])


def python(executable: Path) -> None:
    version = subprocess.run(
        [executable, "-c", "import platform; print(platform.python_version())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for case in cases("python"):
        program = ["-c", CHECK, *files(case, ".py")] if case == "python-syntax" else ["main.py"]
        record("python", version, case, [started(case, str(executable), "-B", "-X", "utf8", *program)])


CHECK = """
import sys, traceback
for path in sys.argv[1:]:
    try:
        compile(open(path, 'rb').read(), path, 'exec')
    except SyntaxError as error:
        sys.stderr.writelines(traceback.format_exception_only(type(error), error))
"""


def dotnet(root: Path, *, feed: Path | None) -> None:
    """Records the compiler, MSBuild and programs.

    Args:
        root: The SDK's directory.
        feed: A directory with the packages of the templates; without it, programs with packages are left out.
    """
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
        if any(word in case for word in WITH_PACKAGES):
            continue
        prepare = f"printf '%s' '{usings}' > Usings.cs; printf '%s' '{configuration}' > app.runtimeconfig.json"
        build = [host, "exec", str(compiler), *flags, *files(case, ".cs"), "Usings.cs"]
        commands: list[Sequence[str]] = [["sh", "-c", prepare], build]
        if case.startswith("dotnet-"):
            record("dotnet", runtime, case, [*commands, started(case, host, "exec", "app.dll")], env=env)
        else:
            record("csc", version, case, commands, env=env)
    for case in cases("msbuild"):
        if case in WITH_FEED and feed is None:
            continue
        source = feed if case in WITH_FEED else "https://127.0.0.1:1/v3/index.json" if "no-index" in case else "."
        prepare = f"printf '%s' '{_sources(str(source))}' > NuGet.Config"
        build = [host, "build", "-p:UseSharedCompilation=false", "-nodeReuse:false"]
        record("msbuild", version, case, [["sh", "-c", prepare], [*build, "-tl:off"]], env=env)
        if case in WITH_TERMINAL:
            record("msbuild", version, case, [["sh", "-c", prepare], [*build, "-tl:on"]], suffix="-terminal", env=env)
    if feed is not None:
        _programs_with_packages(host, runtime, env=env, feed=feed)


WITH_TERMINAL = ("msbuild-errors", "msbuild-missing-package", "msbuild-no-project")
WITH_FEED = ("msbuild-missing-version",)
WITH_PACKAGES = ("-ef-", "-npgsql-", "-sqlclient-")

CONNECTION_STRINGS: Mapping[str, Mapping[str, str]] = {
    "dotnet-npgsql-down": {
        "": "Host=127.0.0.1;Port=1;Username=anna;Timeout=3",
        "-unknown-host": "Host=db.invalid;Username=anna;Timeout=3",
        "-silent": "Host=127.0.0.1;Port={silent};Username=anna;Timeout=2",
    },
    "dotnet-sqlclient-down": {
        "": "Server=127.0.0.1,1;User Id=anna;Password=x;Connect Timeout=3",
        "-unknown-host": "Server=tcp:db.invalid,1433;User Id=anna;Password=x;Connect Timeout=3",
        "-silent": "Server=127.0.0.1,{silent};User Id=anna;Password=x;Connect Timeout=2",
    },
}


def _sources(address: str) -> str:
    """NuGet's settings, with one source named as in the snapshot."""
    sources = f'<packageSources><clear/><add key="snapshot" value="{address}" /></packageSources>'
    return f"<configuration>{sources}</configuration>"


def _programs_with_packages(host: str, version: str, *, env: Mapping[str, str], feed: Path) -> None:
    project = (BUILTIN / "dotnet/efcore/Program.csproj").read_text()
    with (
        tempfile.TemporaryDirectory(prefix="uom-record-") as packages,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        port = str(silent.getsockname()[1])
        for case in (name for name in cases("dotnet") if any(word in name for word in WITH_PACKAGES)):
            prepare = (
                f"printf '%s' '{_sources(str(feed))}' > NuGet.Config; cat > Program.csproj <<'EOF'\n{project}EOF\n"
            )
            build = [host, "build", "-o", "out", "-v", "quiet", "-p:UseSharedCompilation=false", "-p:NuGetAudit=false"]
            start = [host, "exec", "out/Program.dll"]
            usual = {"": "Host=127.0.0.1;Port=1;Username=anna;Timeout=3"}
            for suffix, text in CONNECTION_STRINGS.get(case, usual).items():
                settings = {
                    **env,
                    # The driver of SQL Server refuses to work without cultures.
                    "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "0",
                    "NUGET_PACKAGES": packages,
                    "NUGET_CERT_REVOCATION_MODE": "offline",
                    "CONNECTION_STRING": text.format(silent=port),
                }
                commands = [["sh", "-c", prepare], [*build, "-nodeReuse:false"], start]
                record(
                    "dotnet", version, case, commands, suffix=suffix, env=settings, replaced={port: str(SILENT_PORT)}
                )


def maven(repository: Path, *, home: Path) -> None:
    """Records Maven, and Spring Boot programs with the libraries of the templates.

    Args:
        repository: Local repository that the templates' builds have filled.
        home: A JDK's home.
    """
    options = "--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow"
    env = {"JAVA_HOME": str(home), "MAVEN_OPTS": f"{options} -Dorg.slf4j.simpleLogger.defaultLogLevel=warn"}
    banner = subprocess.run(["mvn", "-v"], capture_output=True, text=True, check=True, env={**os.environ, **env})
    found = re.search(r"Apache Maven (\S+?)(?:\x1b|\s)", banner.stdout)
    assert found is not None, banner.stdout
    local = f"-Dmaven.repo.local={repository}"
    for case in cases("maven"):
        record("maven", found[1], case, [["mvn", "-o", *MAVEN, local, "compile"]], env=env)
        if case == "maven-old-parent":
            with tempfile.TemporaryDirectory(prefix="uom-record-") as empty:
                nowhere = ["-Dhttps.proxyHost=127.0.0.1", "-Dhttps.proxyPort=1", f"-Dmaven.repo.local={empty}"]
                record("maven", found[1], case, [["mvn", *MAVEN, *nowhere, "compile"]], suffix="-no-network", env=env)
    for case in cases("spring"):
        database = "neo4j" if "neo4j" in case else "mongodb"
        template = TEMPLATES / f"spring-data-{database}"
        classpath = _classpath(template / "pom.xml", local, env)
        version = re.search(r"spring-boot-(\d[\d.]*\d)\.jar", classpath)
        assert version is not None, classpath
        sources = files(case, ".java")
        package = "" if case == "spring-default-package" else "shop."
        build = [str(home / "bin/javac"), *JAVAC, "-parameters", "-cp", classpath, *sources]
        start = [str(home / "bin/java"), "-XX:+UseSerialGC", "-cp", f"{classpath}:out", f"{package}Application"]
        for suffix, address in ADDRESSES.get(case, {"": "mongodb://127.0.0.1:1/shop"}).items():
            limit = "?serverSelectionTimeoutMS=500" if database == "mongodb" else ""
            settings = {
                "SPRING_CONFIG_LOCATION": f"file:{template}/",
                "MONGODB_URI": f"{address}{limit}",
                f"SPRING_{database.upper()}_URI": f"{address}{limit}",
            }
            record("spring", version[1], case, [build, start], suffix=suffix, env=settings)


ADDRESSES: Mapping[str, Mapping[str, str]] = {
    "spring-mongodb-down": {
        "": "mongodb://127.0.0.1:1/shop",
        "-unknown-host": "mongodb://db.invalid:27017/shop",
        "-several": "mongodb://127.0.0.1:1,127.0.0.1:2/shop",
    },
    "spring-neo4j-down": {
        "": "bolt://127.0.0.1:1",
        "-unknown-host": "bolt://db.invalid:7687",
        "-routed": "neo4j://127.0.0.1:1",
    },
}


def _classpath(pom: Path, local: str, env: Mapping[str, str]) -> str:
    with tempfile.TemporaryDirectory(prefix="uom-record-") as scratch:
        (Path(scratch) / "pom.xml").write_bytes(pom.read_bytes())
        goal = "org.apache.maven.plugins:maven-dependency-plugin:build-classpath"
        command = ["mvn", "-o", *MAVEN, local, goal, "-Dmdep.outputFile=classpath"]
        subprocess.run(command, cwd=scratch, check=True, env={**os.environ, **env})
        return (Path(scratch) / "classpath").read_text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jdk", type=Path, action="append", default=[], help="a JDK's home; repeatable")
    parser.add_argument("--python", type=Path, action="append", default=[], help="an interpreter; repeatable")
    parser.add_argument("--dotnet", type=Path, action="append", default=[], help="the root of a .NET SDK; repeatable")
    parser.add_argument("--feed", type=Path, help="a directory with the packages of the .NET templates")
    parser.add_argument("--maven", type=Path, action="append", default=[], help="a repository with the templates")
    chosen = parser.parse_args()
    RECORDED.mkdir(exist_ok=True)
    for home in chosen.jdk if not chosen.maven else ():
        java(home)
    for executable in chosen.python:
        python(executable)
    for root in chosen.dotnet:
        dotnet(root, feed=chosen.feed)
    for repository in chosen.maven:
        maven(repository, home=chosen.jdk[0])


if __name__ == "__main__":
    main()
