"""The reference says what the code says."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.pages import ROOT


def test_the_reference_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT / "src")})
    assert done.returncode == 0, done.stdout + done.stderr
