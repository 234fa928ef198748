"""The node tier: real processes, device nodes, namespaces and cgroups of this machine. Needs root and Linux."""
