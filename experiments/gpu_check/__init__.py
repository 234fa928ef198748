"""What a real NVIDIA driver answers: one prepared check of a few minutes, `make gpu-check`. It needs no cluster.

Nothing here can be known from public sources or from the simulated library: which readings a model lacks, what an idle GPU
shows, what calls cost, how long memory takes to come back. The record goes to docs/measurements. Against the simulated library
the same script runs as a rehearsal, and its record says so.
"""
