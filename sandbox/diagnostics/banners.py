"""Lines that tools print about themselves: kept in the output, never counted as findings."""

from __future__ import annotations

import re
from typing import Final

_BANNER: Final = re.compile(
    r"Picked up (?:JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|JDK_JAVAC_OPTIONS): "
    r"|NOTE: Picked up JDK_JAVA_OPTIONS: "
    r"|(?:OpenJDK|Java HotSpot\(TM\)) .* VM warning: "
    r"|Welcome to \.NET "
    r"|Telemetry$"
    r"|MSBuild version \d"
    r"|Microsoft \(R\) (?:Visual )?C# Compiler version "
    r"|Copyright \(C\) Microsoft Corporation\."
)


def is_banner(line: str) -> bool:
    """Returns whether a line is a tool's remark about itself, such as ``Picked up JAVA_TOOL_OPTIONS: …``."""
    return _BANNER.match(line) is not None
