"""The containerised steps of gpu-reclaim. A folder a step; `steps.cli` is the one entry for people and containers."""

__version__ = "0.1.0"
