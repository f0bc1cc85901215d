"""Errors with a message for the user: the command line shows one clear line and no traceback."""


class GenorderError(Exception):
    """A run failed for a reason that the message explains. Exit code 1."""


class InputError(GenorderError):
    """An input cannot be used: the message says what was received, what was expected and what to do. Exit code 2."""


class Interrupted(GenorderError):
    """A signal stopped the run; the same command continues it. Exit code 130."""
