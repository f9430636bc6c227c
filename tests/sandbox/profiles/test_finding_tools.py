"""The set-up steps that look for a toolchain: which one they take, and what they say when there is none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sandbox.local.control.dockerfile import Run, parse
from sandbox.profiles import builtin_profile

TOOLS = ("sh", "sed", "tr", "dirname", "readlink", "ls", "sort", "tail", "head", "grep", "ln", "mkdir", "cat")


class Machine:
    """A machine with nothing but the basic tools, in a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None, tool
            (self.bin / tool).symlink_to(found)

    def program(self, path: str, text: str = "exit 0") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return file

    def jdk(self, directory: str, version: str | None) -> Path:
        self.program(f"{directory}/bin/javac", f"echo javac {version}")
        if version is not None and not directory.endswith("without-release"):
            (self.root / directory / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
        return self.root / directory

    def sdk(self, directory: str, *versions: str) -> Path:
        self.program(f"{directory}/dotnet")
        for version in versions:
            (self.root / directory / "sdk" / version).mkdir(parents=True)
        return self.root / directory

    def set_up(
        self, profile: str, step: str, *, framework: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs one step of a profile as if this directory were the root of the machine."""
        steps = parse(builtin_profile(profile).prepared_for(framework).dockerfile({})).instructions
        script = next(item.script for item in steps if isinstance(item, Run) and f"'{step}'" in item.text)
        assert script is not None
        for path in ("/opt/", "/usr/", "/lib/"):
            script = script.replace(f" {path}", f" {self.root}{path}").replace(f"${path}", f"${self.root}{path}")
        path = environment.pop("PATH", "")
        environ = {"PATH": f"{path}:{self.bin}" if path else str(self.bin), **environment}
        return subprocess.run(["/bin/sh", "-c", script], env=environ, capture_output=True, text=True, check=False)

    def link(self, name: str) -> str:
        return str((self.root / "opt/uom" / name).readlink())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_newest_jdk_that_is_new_enough_is_taken(machine: Machine) -> None:
    machine.jdk("usr/lib/jvm/java-17", "17.0.15")
    machine.jdk("usr/lib/jvm/java-25", "25.0.3")
    newest = machine.jdk("usr/lib/jvm/java-26", "26")
    done = machine.set_up("java", "FIND_JDK")
    assert (done.returncode, done.stdout) == (0, f"JDK 26: {newest}\n"), done.stderr
    assert machine.link("jdk") == str(newest)


def test_java_home_and_directories_on_the_path_are_looked_at(machine: Machine) -> None:
    home = machine.jdk("elsewhere/jdk-25", "25")
    assert machine.set_up("java", "FIND_JDK", JAVA_HOME=str(home)).returncode == 0
    assert machine.link("jdk") == str(home)
    toolchain = machine.jdk("toolchains/jdk-27", "27.0.1")
    assert machine.set_up("java", "FIND_JDK", PATH=f"{toolchain}:{toolchain}/bin").returncode == 0
    assert machine.link("jdk") == str(toolchain)


def test_a_jdk_without_a_release_file_is_asked_for_its_version(machine: Machine) -> None:
    home = machine.jdk("usr/lib/jvm/without-release", "25.0.1")
    assert machine.set_up("java", "FIND_JDK").stdout == f"JDK 25.0.1: {home}\n"


def test_without_a_jdk_the_step_says_what_was_found_and_what_to_do(machine: Machine) -> None:
    done = machine.set_up("java", "FIND_JDK")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "A JDK of version 25 or newer is needed; found: none."
    old = machine.jdk("usr/lib/jvm/java-17", "17.0.15")
    done = machine.set_up("java", "FIND_JDK")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"A JDK of version 25 or newer is needed; found: 17.0.15 ({old}).",
        f"Install one below {machine.root}/usr/lib/jvm, or name its directory in UOM_TOOLCHAINS.",
    ]


def test_an_sdk_on_the_path_is_taken_with_its_newest_version(machine: Machine) -> None:
    root = machine.sdk("toolchains/dotnet", "9.0.300", "10.0.99", "10.0.401")
    done = machine.set_up("dotnet", "FIND_DOTNET", PATH=str(root))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f".NET SDK 10.0.401: {root}"
    assert machine.link("dotnet") == str(root)


def test_without_an_sdk_the_step_says_what_was_found_and_what_to_do(machine: Machine) -> None:
    done = machine.set_up("dotnet", "FIND_DOTNET")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "A .NET SDK of version 10 or newer is needed; found: none.",
        "Install one, or name its directory in UOM_TOOLCHAINS.",
    ]
    old = machine.sdk("usr/lib/dotnet", "8.0.400")
    runtime_only = machine.sdk("usr/share/dotnet")
    done = machine.set_up("dotnet", "FIND_DOTNET")
    assert done.returncode == 1
    assert f"found: no SDK ({runtime_only}) 8.0.400 ({old})." in done.stderr


PYTHON = 'case "$4" in *version_info\\[*) echo {version} ;; *executable*) echo "$0" ;; *) exit {old} ;; esac'


def test_the_first_python_that_is_new_enough_is_taken(machine: Machine) -> None:
    machine.program("first/python3", PYTHON.format(version="3.9.2", old=1))
    new = machine.program("second/python3", PYTHON.format(version="3.12.1", old=0))
    done = machine.set_up("python", "FIND_PYTHON", PATH=f"{machine.root}/first:{machine.root}/second")
    assert (done.returncode, done.stdout) == (0, f"Python 3.12.1: {new}\n"), done.stderr
    assert machine.link("bin/python3") == str(new)


def test_without_a_python_the_step_says_what_was_found_and_what_to_do(machine: Machine) -> None:
    old = machine.program("first/python3", PYTHON.format(version="3.9.2", old=1))
    done = machine.set_up("python", "FIND_PYTHON", PATH=f"{machine.root}/first")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"Python 3.11 or newer is needed; found: 3.9.2 ({old}).",
        "Install one, or name the directory of one in UOM_TOOLCHAINS.",
    ]


def test_a_package_source_that_the_sandbox_does_not_see_is_named(machine: Machine) -> None:
    (machine.root / "opt/uom").mkdir(parents=True)
    done = machine.set_up("dotnet", "CHOOSE_PACKAGE_SOURCE", UOM_NUGET_SOURCE="/srv/no-such-feed")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "UOM_NUGET_SOURCE: /srv/no-such-feed is no directory in the sandbox."
    assert "UOM_TOOLCHAINS" in done.stderr


def test_a_package_source_goes_into_the_settings_as_text(machine: Machine) -> None:
    (machine.root / "opt/uom").mkdir(parents=True)
    done = machine.set_up("dotnet", "CHOOSE_PACKAGE_SOURCE", UOM_NUGET_SOURCE='feed://host/v3?a=1&b="2"')
    assert done.returncode == 0, done.stderr
    assert "host" not in done.stdout
    settings = (machine.root / "opt/uom/nuget/build.config").read_text()
    assert '<clear /><add key="chosen" value="feed://host/v3?a=1&amp;b=&quot;2&quot;" />' in settings


def test_missing_maven_is_told_with_the_remedy(machine: Machine) -> None:
    machine.program("bin/id", "echo 1000")
    done = machine.set_up("java", "FIND_MAVEN", framework="spring-data-mongodb", UOM_MAVEN_MIRROR="")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "Maven of version 3.8 or newer is needed; found: none."
    assert "apt-get install maven" in done.stderr


def test_a_mirror_of_maven_goes_into_the_settings_as_text(machine: Machine) -> None:
    machine.program("bin/mvn")
    done = machine.set_up("java", "FIND_MAVEN", framework="spring-data-neo4j", UOM_MAVEN_MIRROR="feed://host/?a=1&b=<2")
    assert done.returncode == 0, done.stderr
    assert "host" not in done.stdout
    settings = (machine.root / "opt/uom/maven/settings.xml").read_text()
    assert "<mirrorOf>*</mirrorOf><url>feed://host/?a=1&amp;b=&lt;2</url>" in settings


@pytest.mark.parametrize(
    ("source", "settings"),
    [
        ("", None),
        ("https://packages.example/index.json?a=1&b=2", '<add key="chosen" value="{}" />'),
        ("http://packages.example/index.json", '<add key="chosen" value="{}" allowInsecureConnections="true" />'),
        ("/feed", '<add key="chosen" value="{}" />'),
    ],
)
def test_packages_come_from_the_chosen_source_or_from_the_sdks_own(
    machine: Machine, source: str, settings: str | None
) -> None:
    (machine.root / "feed").mkdir()
    source = source.replace("/feed", str(machine.root / "feed"))
    done = machine.set_up("dotnet", "CHOOSE_PACKAGE_SOURCE", UOM_NUGET_SOURCE=source)
    assert done.returncode == 0, done.stderr
    folder = machine.root / "opt/uom"
    assert str(machine.root / "opt/uom/nuget/packages") in (folder / "nuget/offline.config").read_text()
    chosen = folder / "nuget/build.config"
    noted = (folder / "dotnet.env").read_text()
    if settings is None:
        # With a file that names no source, NuGet would have none.
        assert not chosen.exists()
        assert noted.endswith("sources=\n")
    else:
        assert settings.format(source.replace("&", "&amp;")) in chosen.read_text()
        assert noted.endswith("sources=-p:RestoreConfigFile=/opt/uom/nuget/build.config\n")


def test_a_package_source_that_is_no_directory_is_refused(machine: Machine) -> None:
    done = machine.set_up("dotnet", "CHOOSE_PACKAGE_SOURCE", UOM_NUGET_SOURCE="/no/such/feed")
    assert done.returncode == 1
    assert "is no directory in the sandbox" in done.stderr
    assert "UOM_TOOLCHAINS" in done.stderr
