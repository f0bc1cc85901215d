import genorder


def test_every_public_name_can_be_used_and_is_listed_once() -> None:
    assert sorted(genorder.__all__) == sorted(genorder._MODULE_OF)
    for name in genorder.__all__:
        if name == "resolve":
            assert callable(genorder.resolve)  # an instance, which has no name of its own
        else:
            assert getattr(genorder, name).__name__ == name


def test_importing_the_package_does_not_load_torch() -> None:
    import subprocess
    import sys

    code = "import sys, genorder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(genorder, "nonsense")
