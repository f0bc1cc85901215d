"""Which positions determine each target, with evidence: mined by counting (mining.py), in one graph (graph.py)."""
