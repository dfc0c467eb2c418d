"""What any plugin package can use in its own tests: data makers and the conformance kit."""

from __future__ import annotations

import sys

if "pytest" in sys.modules:
    import pytest

    # so that a failing assert of the kit shows the values it compared, as one in a test module does
    pytest.register_assert_rewrite("moraine_core.testing.conformance")
