"""``uom-sandbox profiles``."""

from __future__ import annotations

import argparse
import sys

import orjson

from sandbox.profiles import builtin_profile, builtin_profile_names


def run(options: argparse.Namespace) -> int:
    """Lists the built-in profiles, or prints one as JSON."""
    if options.name is not None:
        profile = builtin_profile(options.name)
        sys.stdout.write(orjson.dumps(profile.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode() + "\n")
        return 0
    for name in builtin_profile_names():
        profile = builtin_profile(name)
        print(f"{profile.name}: {profile.description}")
        print(f"  image {profile.image}, {profile.resources.cpu} CPU, {profile.resources.memory} GiB memory")
        print(f"  network {profile.network.mode}, isolation {profile.isolation.value}")
        for framework, template in sorted(profile.frameworks.items()):
            default = " (default)" if framework == profile.default_framework else ""
            print(f"  {framework}{default}: {template.description}")
    return 0
