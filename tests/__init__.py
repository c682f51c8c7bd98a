"""Tests; the shipped contracts tell values when they fail, which has to be asked for before they are imported."""

import pytest

pytest.register_assert_rewrite("teffmem.testing")
