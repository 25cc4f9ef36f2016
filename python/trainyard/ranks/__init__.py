"""Ranks in Python, which a RankExecutor of the C++ library commands: docs/ranks.md."""
