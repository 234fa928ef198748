"""A small cluster as data: raw Kubernetes objects, GPU nodes, a simulated clock, and the controllers that move them."""
