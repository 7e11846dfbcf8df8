"""``Suite``: what the classes of tests that ship have in common. One test for each op, and known gaps. Needs pytest."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from nestgrad.ops import TABLE
from nestgrad.testing.operations import samples_of


class Suite:
    """Tests to subclass, of which some run for each op.

    Attributes:
        xfails: What is known to fail: name of an op or of a test here, and the reason. What is listed and passes fails.
    """

    xfails: ClassVar[Mapping[str, str]] = {}

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """One test for each op that there is when the tests are collected."""
        if "op" in metafunc.fixturenames:
            for op in TABLE.values():
                samples_of(op)  # an op without samples fails collection
            metafunc.parametrize("op", TABLE.values(), ids=lambda op: op.name)

    @pytest.fixture(autouse=True)
    def known_gaps(self, request: Any) -> Iterator[None]:
        """Tests named in ``xfails`` have to fail."""
        params = getattr(getattr(request.node, "callspec", None), "params", {})
        name = params["op"].name if "op" in params else request.node.originalname
        if name in self.xfails:
            request.applymarker(pytest.mark.xfail(reason=self.xfails[name], strict=True))
        yield

    def test_xfails_name_tests(self) -> None:
        """A known gap has the name of an op or of a test, so that it cannot outlive what it was about."""
        unknown = [name for name in self.xfails if name not in TABLE and not hasattr(self, name)]
        assert not unknown, f"xfails names {unknown}, which are neither ops nor tests"
