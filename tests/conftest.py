"""For all tests: a slow machine is no failure, and Ctrl-C reaches the programs that they start."""

import signal

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A shell that runs something in the background has it ignore Ctrl-C, and what it starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
