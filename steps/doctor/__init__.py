"""Whether an installation is as it should be: pure checks over what was read of it."""
