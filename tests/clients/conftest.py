from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "clients" / "vectors"))

MANY = 200


@pytest.fixture(scope="session")
def many_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of 200 vectors for each setting, made now by Python; the first 40 of each are those of the package."""
    import make

    folder = tmp_path_factory.mktemp("vectors")
    make.write(folder, MANY)
    return folder
