"""What a run directory tells, for people: plain tables, figures drawn from them, and one HTML page."""
