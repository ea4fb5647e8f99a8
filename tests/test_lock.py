"""The lock contains all tested packages, and the list of licences all packages of the lock."""

import tomllib

import pytest
from packaging.requirements import Requirement

from tests import lock, lowest


def test_lock_and_licences_are_of_the_tree_that_is_installed():
    found = lock.tree()
    assert len(found) > len(lock.named(lock.ROOT / "tests" / "requirements.txt"))
    assert lock.LOCK.read_text(encoding="utf-8") == lock.lock(found)
    assert all(lock.license_of(made) for made in found.values())
    assert lock.LICENSES.read_text(encoding="utf-8") == lock.licenses(found)


def test_what_has_hashes_is_what_is_locked_and_what_tests_install_and_the_audit_reads():
    hashed = {}
    for line in lock.HASHES.read_text(encoding="utf-8").splitlines()[1:]:
        pin, digest = line.split(" --hash=sha256:")
        assert len(digest) == 64
        hashed[Requirement(pin).name] = pin
    locked = lock.LOCK.read_text(encoding="utf-8").splitlines()[1:]
    built = {pin for pin in locked if Requirement(pin).name in lock.BUILDS}
    assert sorted([*hashed.values(), *built]) == sorted(locked)
    lines = (lock.ROOT / "tests" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    constrained = [line[3:] for line in lines if line.startswith("-c ")]
    assert [(lock.ROOT / "tests" / each).resolve() for each in constrained] == [lock.LOCK]
    lines = (lock.ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
    [audit] = [line for line in lines if line.startswith("pip-audit ")]
    assert "--strict" in audit.split() and str(lock.HASHES.relative_to(lock.ROOT)) in audit


def test_the_tested_versions_are_within_the_bounds_and_each_bound_has_a_lowest_version():
    text = (lock.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    required = tomllib.loads(text)["project"]["dependencies"]
    lines = lock.LOCK.read_text(encoding="utf-8").splitlines()[1:]
    locked = dict(line.split("==") for line in lines)
    for requirement in map(Requirement, required):
        for pin in lowest.lowest([str(requirement)]):
            name, version = pin.split("==")
            assert name == requirement.name and requirement.specifier.contains(version)
            assert requirement.specifier.contains(locked[lock.canonicalize_name(name)])
    other = "tool>=2,<3; sys_platform == 'nowhere'"
    assert lowest.lowest(["a>=1.5,<2", "b==3.1", other]) == ["a==1.5", "b==3.1"]
    with pytest.raises(ValueError, match="c has no lower bound"):
        lowest.lowest(["c<4"])
    assert lowest.tools(["# text", "-r other.txt", "", "mypy==2", "pytest==9"]) == ["pytest==9"]
