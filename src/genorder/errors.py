"""The errors a user can cause or meet: each is one clear line, never a traceback, on the command line."""


class GenorderError(Exception):
    """A run failed for a reason that the message explains. Exit code 1."""


class InputError(GenorderError):
    """What the user gave cannot be used: says what was received, what was expected, what to do. Exit code 2."""


class Interrupted(GenorderError):
    """The run was stopped by a signal; the same command continues it. Exit code 130."""
