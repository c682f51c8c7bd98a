"""The same work done by other memories: ``python -m benchmarks.rivals`` runs all of them and compares."""
