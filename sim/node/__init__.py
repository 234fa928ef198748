"""What a node with GPUs runs besides pods, without a GPU: state file, device nodes, device plugin, runtime wrapper, workload."""
