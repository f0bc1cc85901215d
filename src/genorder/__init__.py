"""Find the order in which a Transformer should emit its target tokens so that training succeeds."""
