"""A wheel is built, installed in an environment of its own, and does the main job there."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    code = (
        "import sys; from hatchling.builders.wheel import WheelBuilder;"
        "print(next(WheelBuilder(sys.argv[1]).build(directory=sys.argv[2])))"
    )
    subprocess.run([sys.executable, "-c", code, str(ROOT), str(folder)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_contents(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for needed in ("symtensor/py.typed", "codegen/templates/module.py.jinja", "derivations/resnet_kernel/__init__.py"):
        assert needed in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


def test_installed_wheel_runs(wheel: Path, tmp_path: Path) -> None:
    """Dependencies come from the running environment, the three packages from the wheel alone."""
    venv.create(tmp_path / "env", system_site_packages=False)
    python = next((tmp_path / "env").glob("bin/python")) if sys.platform != "win32" else tmp_path / "env/Scripts/python.exe"
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    site = Path(subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip())
    zipfile.ZipFile(wheel).extractall(site)
    here = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(here) + "\n")
    where = subprocess.run(
        [str(python), "-c", "import symtensor; print(symtensor.__file__)"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert str(site) in where.stdout
    options = "--activation relu --kernel 1.0 --depth 2 --samples 0 --out result".split()
    run = subprocess.run(
        [str(python), "-m", "symtensor", "run", "resnet-kernel", *options], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    summary = json.loads((tmp_path / "result" / "summary.json").read_text())
    assert summary["theory"]["K0"][2][0][0] == pytest.approx(1.1**2)  # hand value: K' = K (1 + dt C_W / 2)
