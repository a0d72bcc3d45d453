"""The package as it is published."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
import zipfile
from email.parser import Parser
from pathlib import Path

import holdfast
from holdfast import errors

ROOT = Path(__file__).parents[1]
LONGEST_IMPORT = 0.1
"""Seconds of processor time that the import may take in addition to that of httpx."""

IMPORT = "import time, httpx; start = time.process_time(); import holdfast; print(time.process_time() - start)"


def run(*args: str) -> str:
    done = subprocess.run([sys.executable, *args], check=True, capture_output=True, text=True, cwd=ROOT)
    return done.stdout


class WheelTest(unittest.TestCase):
    def test_the_wheel(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        run("-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder))
        (wheel,) = folder.iterdir()
        version = (ROOT.parent / "VERSION").read_text().strip()
        self.assertEqual(wheel.name, f"holdfast-{version}-py3-none-any.whl")
        self.assertEqual(holdfast.__version__, version)
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            archive.extractall(folder / "installed")
        info = f"holdfast-{version}.dist-info"
        metadata = Parser().parsestr((folder / "installed" / info / "METADATA").read_text())
        self.assertEqual(metadata.get_all("Requires-Dist"), ["httpx<1,>=0.27"], "httpx is the only dependency")
        self.assertEqual(metadata["License-Expression"], "Apache-2.0")
        self.assertIn("holdfast/py.typed", names)
        self.assertIn(f"{info}/licenses/LICENSE", names)
        modules = {f"holdfast/{file.name}" for file in (ROOT / "src" / "holdfast").glob("*.py")}
        self.assertLessEqual(modules, names)
        check = "import sys; sys.path.insert(0, sys.argv[1]); import holdfast; print(holdfast.__file__)"
        self.assertIn("installed", run("-I", "-c", check, str(folder / "installed")))

    def test_the_licence_is_that_of_the_repository(self) -> None:
        self.assertEqual((ROOT / "LICENSE").read_text(), (ROOT.parents[1] / "LICENSE").read_text())


class ImportTest(unittest.TestCase):
    def test_it_imports_only_what_each_client_needs(self) -> None:
        code = "import sys, httpx; before = set(sys.modules); import holdfast; print(*sorted(set(sys.modules) - before))"
        added = run("-c", code).split()
        ours = [name for name in added if name.startswith("holdfast")]
        self.assertIn("holdfast._sync_gen", ours)
        self.assertNotIn("holdfast._types_gen", ours, "the types are only imported by programs that use them")
        self.assertNotIn("asyncio", added, "asyncio is only imported by programs that use it")
        others = {name.partition(".")[0] for name in added} - {"holdfast"}
        self.assertLessEqual(others, sys.stdlib_module_names)

    def test_the_time_of_the_import(self) -> None:
        run("-c", "import holdfast")  # writes the compiled files
        shortest = min(float(run("-c", IMPORT)) for _ in range(5))
        self.assertLess(shortest, LONGEST_IMPORT)


class ErrorsTest(unittest.TestCase):
    def test_public_names(self) -> None:
        for name in errors.__all__:
            self.assertTrue(issubclass(getattr(errors, name), holdfast.HoldfastError), name)
        self.assertEqual(len(set(errors.__all__)), len(errors.__all__))
        for name in holdfast.__all__:
            self.assertTrue(hasattr(holdfast, name), name)
