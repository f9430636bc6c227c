"""What the platform knows and does: records, states, sandboxes, snapshots, builds; no HTTP."""
