"""The toolbox: what answers below a sandbox's own address (sessions, processes, files)."""

from .routes import Resolve, toolbox_routes
from .toolbox import Toolbox

__all__ = ["Resolve", "Toolbox", "toolbox_routes"]
