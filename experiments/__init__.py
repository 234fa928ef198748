"""Experiments: steps and reports of their own, beside the reclaim steps and not inside them."""
