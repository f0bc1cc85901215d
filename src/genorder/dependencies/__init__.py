"""Which positions determine each target, with evidence, by counting.

samples.py counts, relations.py says what is counted, mining.py screens and grows sets, noise.py says what noise
explains, closure.py chains them from the inputs, graph.py is what comes out.
"""
