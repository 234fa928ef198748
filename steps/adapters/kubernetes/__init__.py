"""Everything that speaks with the Kubernetes API. All of it goes through one port, `api.Api`, real or simulated."""
