"""Exceptions and warnings raised by the library."""


class CppclError(Exception):
    """Base class of every error that the library raises on purpose."""


class InputError(CppclError, ValueError):
    """Something the user gave is wrong: the message names it, its value and a hint.

    Never worth a retry: the same input fails again.
    """


class NotFittedError(InputError, AttributeError):
    """Something is asked of a method that only `fit` gives it."""


class ResumeError(InputError):
    """A saved state is of another training, or of another version of the library."""


class PictureError(InputError):
    """A file cannot be decoded as a picture."""


class TooManyBadPicturesError(InputError):
    """The share of pictures that could not be decoded exceeds the allowed one."""


class DataUnavailableError(CppclError):
    """A data set or a weights file is not here; the message says where to get and put it."""


class ConvergenceWarning(UserWarning):
    """A solver stopped at its iteration limit before reaching its tolerance."""
