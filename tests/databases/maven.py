"""What tests need of Maven: where its repository is, and class paths of libraries that only tests use."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import socket
import subprocess
import zipfile
from pathlib import Path

NEEDED = "mvn is not on this machine"


def repository_networks() -> tuple[str, ...]:
    """The addresses of Maven's repository that are not public ones, as networks; some machines have a mirror there.

    Maven's own model of a project says which host that is; a mirror that the settings name is not looked at.
    """
    program = shutil.which("mvn")
    if program is None:
        return ()
    libraries = Path(program).resolve().parent.parent / "lib"
    builders = sorted(libraries.glob("maven-model-builder*.jar"))
    if not builders:
        return ()
    with zipfile.ZipFile(builders[-1]) as jar:
        model = jar.read("org/apache/maven/model/pom-4.0.0.xml").decode()
    host = re.search(r"<url>https://([^/<]+)", model)
    if host is None:
        return ()
    try:
        found = socket.getaddrinfo(host[1], 443, family=socket.AF_INET, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    addresses = {str(address[0]) for *_, address in found}
    return tuple(sorted(f"{item}/32" for item in addresses if not ipaddress.ip_address(item).is_global))


def java_home() -> Path | None:
    """The newest JDK of this machine that is new enough."""
    homes = [path for path in Path("/usr/lib/jvm").glob("*") if (path / "release").is_file() and not path.is_symlink()]
    versions = {path: re.search(r'JAVA_VERSION="(\d+)', (path / "release").read_text()) for path in homes}
    fit = [(int(match[1]), path) for path, match in versions.items() if match and int(match[1]) >= 25]
    return max(fit)[1] if fit else None


def class_path(pom: Path, *, home: Path, scratch: Path) -> str:
    """Resolves the libraries of a project that are needed to run it.

    Args:
        pom: The project.
        home: The JDK that Maven runs on.
        scratch: An empty directory to work in.

    Raises:
        subprocess.CalledProcessError: They cannot be fetched.
    """
    shutil.copy(pom, scratch / "pom.xml")
    goal = "org.apache.maven.plugins:maven-dependency-plugin:build-classpath"
    command = [
        "mvn",
        "-B",
        "-ntp",
        "-q",
        "-Dstyle.color=never",
        goal,
        "-Dmdep.includeScope=runtime",
        "-Dmdep.outputFile=classpath",
    ]
    environ = {**os.environ, "JAVA_HOME": str(home), "MAVEN_OPTS": "-XX:TieredStopAtLevel=1"}
    done = subprocess.run(command, cwd=scratch, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return (scratch / "classpath").read_text(encoding="utf-8")
