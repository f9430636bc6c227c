"""The control plane of the local platform."""
