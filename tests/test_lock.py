"""The lock contains all tested packages, and the list of licences all packages of the lock."""

from packaging.requirements import Requirement

from tests import lock


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
