"""Hera: which step runs when, where, as whom. One file a WorkflowTemplate; rendered to `manifests/`."""
