"""Performance as ratios, each measured side by side in one run. `make bench` runs them all."""
