"""The documents that pass between steps, the ports to the outside, and the declaration of a step.

Nothing in here does I/O, and nothing in here imports another package of the project.
"""
