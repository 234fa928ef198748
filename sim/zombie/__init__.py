"""The termination experiment's outside, simulated: containers that obey what was measured on a real kernel, and looks at them."""
