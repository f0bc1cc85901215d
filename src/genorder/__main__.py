"""`python -m genorder` is the command line."""

from genorder.cli.app import main

main()
