"""The local platform: a single-machine server that speaks the Daytona API."""
