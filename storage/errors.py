"""Exceptions of the artifact store. Every message names the place and a hint."""


class StoreError(Exception):
    """Base class of every error that the store raises on purpose."""


class RecipeError(StoreError, ValueError):
    """A parameter, a name or a value has no canonical form, so no key can be made of it."""


class BlockError(StoreError, ValueError):
    """A block or an array does not have the shape, dtype or place that was declared for it."""


class UnknownReferenceError(StoreError, LookupError):
    """A text names no artifact, or more than one."""


class MissingArtifactError(StoreError, LookupError):
    """The artifact is not in the store; the message says which stage makes it."""


class DamagedArtifactError(StoreError):
    """Stored bytes are not those that were published; the message names array or file."""


class StoreAccessError(StoreError, OSError):
    """The file system refused: disk full, no permission, read-only."""


class StoreInUseError(StoreError):
    """Nothing may be collected while a run uses the store."""


class RemoteURLError(StoreError, ValueError):
    """The URL of a remote cannot be used as it is."""


class RemoteError(StoreError):
    """The remote cannot be reached, or refuses; the message names its URL and a hint."""
