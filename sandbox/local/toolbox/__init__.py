"""The part of the platform that acts inside a sandbox."""
