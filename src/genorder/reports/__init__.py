"""Reports of run directories: plain tables, figures drawn from them, and one HTML page."""
