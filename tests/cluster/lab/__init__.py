"""A real one-node Kubernetes with Argo Workflows and Argo Events, built from source and run on this machine for the tests.

`python -m tests.cluster.lab build|images|up|down|status|kubectl` by hand; tests use `Lab` through the fixtures of
`tests/cluster/conftest.py`. docs/cluster-tests.md says what it can show and what not.
"""
