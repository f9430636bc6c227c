"""Labels by which the runtime finds what is its own among the containers and images of an engine."""

from __future__ import annotations

OWNER = "uom-sandbox.owner"
"""Data directory that a container or image belongs to, see ``DockerPlaces.owner``."""

ROLE = "uom-sandbox.role"
"""``box``, ``layer``, ``base`` or ``scratch`` (made for a moment, to be removed by whoever finds it)."""

BOX = "uom-sandbox.box"
"""Id of the box that a container is."""

LAYER = "uom-sandbox.layer"
"""Id of the layer that an image is."""

STACK = "uom-sandbox.stack"
"""Ids of the layers in an image, lowest first, separated by commas."""

ENVIRONMENT = "uom-sandbox.environment"
"""``ENV`` of the image at the bottom, as JSON; inherited by every image and container above."""

BUILD = "uom-sandbox.build"
"""``yes`` for a box in which a snapshot is built."""
