"""One browser page: take snapshots, perform actions, replay recorded paths."""
