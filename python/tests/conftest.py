"""Fixtures, and the line that says which libheed was tested."""

import os
from pathlib import Path

import numpy as np
import pytest

import heed


def pytest_report_header(config):
    return f"heed {heed.__version__} from {heed.info()['library']}"


@pytest.fixture
def rng():
    return np.random.default_rng(20240917)


@pytest.fixture
def conformance():
    """The folder of conformance data."""
    folder = os.environ.get("HEED_CONFORMANCE_DIR")
    if not folder:
        pytest.skip("HEED_CONFORMANCE_DIR is not set")
    return Path(folder)
