"""A GPU node and a small cluster that are not there, behind the same ports as the real ones. Not in the shipped image."""
