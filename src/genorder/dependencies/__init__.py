"""Which positions determine each target, with evidence, by functional dependency mining.

mining.py screens and grows sets of positions; samples.py counts agreeing samples, relations.py defines what they must
agree in, noise.py measures noise, closure.py chains determinants from the inputs; graph.py holds the results.
"""
