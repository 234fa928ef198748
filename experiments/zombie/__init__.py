"""The termination experiment: which of init process, preStop hook and signal handler lets a GPU pod leave nothing behind."""
