"""What tools read of an estimator's class."""

from dataclasses import fields

from cppcl import CPRL


def test_a_class_shows_the_signature_of_its_constructor():
    shown = list(CPRL.__signature__.parameters)  # whatever this Python would take without it
    assert shown == [f.name for f in fields(CPRL) if f.init] == CPRL.option_names()
