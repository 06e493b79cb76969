"""Gives the wheel the tag of what it holds: any Python 3, but the platform of the C library."""

import os
import pathlib
import re

from setuptools import setup
from setuptools.dist import Distribution
from wheel.bdist_wheel import bdist_wheel


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", os.environ.get("HEADROOM_WHEEL_PLATFORM", "linux_x86_64")


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True  # installed among the platform's packages


def version():
    """Return $HEADROOM_WHEEL_VERSION, or the version in the CMakeLists.txt of the source tree."""
    given = os.environ.get("HEADROOM_WHEEL_VERSION")
    if given:
        return given
    lists = pathlib.Path(__file__).resolve().parents[2] / "CMakeLists.txt"
    return re.search(r"project\(headroom\s+VERSION\s+([\d.]+)", lists.read_text()).group(1)


setup(version=version(), cmdclass={"bdist_wheel": Wheel}, distclass=WithLibrary)
