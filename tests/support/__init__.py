"""Helpers of the tests through real mounts, of scripts/benchmark and of fuzz/seeds.py."""
