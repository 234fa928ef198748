"""The outside of the experiments: sessions that may be made and ended, and fast looks at a node."""
