"""The only code that touches the outside: Kubernetes, NVML, /proc, the kubelet, the clock. Imports contracts only."""
