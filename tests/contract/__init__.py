"""One suite over the simulated API and a real one."""
