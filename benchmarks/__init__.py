"""Measures teffmem: ``python -m benchmarks`` lists what there is, README.md says what it means."""
