"""What a person on a node is shown, by `gpu-reclaim trace` and `gpu-reclaim observe`: documents, verdicts and text. Pure."""
