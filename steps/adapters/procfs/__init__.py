"""What /proc and /dev say: who holds GPU devices, by which way, and whose connections reach into pods."""

from steps.adapters.procfs.reader import ProcfsReader

__all__ = ["ProcfsReader"]
