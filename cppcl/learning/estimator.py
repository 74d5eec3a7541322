"""Options of an estimator: read, changed and copied as scikit-learn's are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from inspect import Signature, signature
from typing import Any, Self

from cppcl.errors import InputError
from cppcl.validation import suggestion


class _ConstructorSignature:
    """Signature of a class: that of its ``__init__``.

    Python before 3.11.3 takes that of ``__new__`` where a class has both.
    """

    def __get__(self, instance: object, owner: type) -> Signature:
        found = signature(owner.__init__)  # type: ignore[misc]
        return found.replace(parameters=list(found.parameters.values())[1:])


class Estimator:
    """Base of classes whose constructor takes options as keywords and checks them.

    The constructor stores every option under its own name, and refuses what is out of range;
    nothing else changes options but `set_params`. What a subclass learns has names that end in
    ``_``. `sklearn.base.clone` then makes an unfitted copy.

    A dataclass may have groups of options: fields whose default factory is an `Estimator` of its
    own, or a ``functools.partial`` of one with other defaults. `read_groups` lets a group be given
    as a mapping of what differs from these defaults, and `get_params` and `set_params` reach into
    it by ``group__option``.
    """

    __signature__ = _ConstructorSignature()

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Refuse an option that does not exist, with the nearest, before anything is constructed.

        Raises
        ------
        InputError
            A ValueError, as of an option that is out of range.
        """
        check_option_names(cls.__name__, options, cls.option_names())
        return super().__new__(cls)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator: that labels are needed, and no more."""
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(),
        )

    @classmethod
    def option_names(cls) -> list[str]:
        """Names of the options, in the order of the constructor."""
        kind: type = cls
        return list(_parameters(kind))

    @classmethod
    def groups(cls) -> dict[str, partial[Estimator]]:
        """Constructor of every group of options, by name; its keywords are defaults here."""
        known = getattr(cls, "__dataclass_fields__", {})
        makers = {
            name: partial(known[name].default_factory)  # of a partial: the same again
            for name in cls.option_names()
            if name in known and callable(known[name].default_factory)
        }
        return {
            name: make
            for name, make in makers.items()
            if isinstance(make.func, type) and issubclass(make.func, Estimator)
        }

    def read_groups(self) -> None:
        """Construct the groups that were given as mappings."""
        for name, make in self.groups().items():
            given, kind = getattr(self, name), _kind(make)
            if isinstance(given, Mapping):
                check_option_names(name, given, kind.option_names())
                setattr(self, name, make(**given))
            elif not isinstance(given, kind):
                raise InputError(
                    f"{name}={given!r} must be a {kind.__name__}, or a mapping of its options"
                )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name; with `deep`, also those of groups by ``group__option``."""
        options = {name: getattr(self, name) for name in self.option_names()}
        for group in self.groups() if deep else ():
            inner = options[group].get_params()
            options |= {f"{group}__{name}": value for name, value in inner.items()}
        return options

    def options(self) -> dict[str, Any]:
        """Return the options as plain values, those of a group as a dictionary."""
        options = self.get_params(deep=False)
        return options | {group: options[group].options() for group in self.groups()}

    def set_params(self, **options: Any) -> Self:
        """Change options; what was learned stays, until the next `fit`.

        Raises
        ------
        InputError
            For an option that does not exist or is out of range; then none is changed.
        """
        changed = {name: value for name, value in options.items() if "__" not in name}
        of_groups: dict[str, dict[str, Any]] = {}
        for name in options.keys() - changed.keys():
            group, _, option = name.partition("__")
            check_option_names(type(self).__name__, {group: None}, [*self.groups()])
            known = _kind(self.groups()[group]).option_names()
            check_option_names(group, {option.partition("__")[0]: None}, known)
            of_groups.setdefault(group, {})[option] = options[name]
        for group, inner_options in of_groups.items():
            given = changed.get(group, getattr(self, group))
            made = self.groups()[group](**given) if isinstance(given, Mapping) else given
            copy = type(made)(**made.get_params(deep=False))
            changed[group] = copy.set_params(**inner_options)
        check_option_names(type(self).__name__, changed, self.option_names())
        checked = type(self)(**self.get_params(deep=False) | changed)
        for name in changed:
            setattr(self, name, getattr(checked, name))
        return self

    def __repr__(self) -> str:
        """Constructor call that gives the same options; defaults are left out."""
        defaults = type(self)().get_params(deep=False)
        given = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            # Compared as text: 1 equals 1.0 and True, and NaN not even itself.
            if repr(value) != repr(defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(given)})"


def _kind(make: partial[Estimator]) -> type[Estimator]:
    """Class that a group's constructor makes."""
    kind: type[Estimator] = make.func  # type: ignore[assignment]
    return kind


@cache
def _parameters(kind: type) -> tuple[str, ...]:
    return tuple(signature(kind).parameters)


def check_option_names(owner: str, options: Mapping[str, Any], known: list[str]) -> None:
    """Raise `InputError`, with the nearest known name, for an option that does not exist."""
    for name in options:
        if name not in known:
            raise InputError(f"{owner} has no option {name!r}{suggestion(str(name), known)}")


def flattened(options: Mapping[str, Any]) -> dict[str, Any]:
    """Nested options by path: ``{"pacing": {"eta": 2}}`` becomes ``{"pacing.eta": 2}``."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping) and value:
            flat |= {f"{name}.{rest}": inner for rest, inner in flattened(value).items()}
        else:
            flat[name] = value
    return flat


def merged(options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested options with changes, which are nested or by path; neither is changed itself."""
    result = dict(options)
    for path, value in flattened(changes).items():
        name, _, rest = path.partition(".")
        result[name] = merged(result.get(name) or {}, {rest: value}) if rest else value
    return result
