"""The command line of tests whose rows take long: which of them are run, and each test that is not run, by name."""
import sys
import unittest


def choices(arguments):
    """Of the arguments: the texts of which a row's name has one, (I, N) of --part=I/N, and those of unittest."""
    chosen = [text for text in arguments if not text.startswith("-")]
    part = next((text.removeprefix("--part=") for text in arguments if text.startswith("--part=")), "1/1")
    others = [text for text in arguments if text.startswith("-") and not text.startswith("--part=")]
    return chosen, tuple(map(int, part.split("/"))), others


def main(others):
    """Runs the tests of the script, prints why which of them were skipped, and ends with their status."""
    result = unittest.main(module="__main__", argv=[sys.argv[0], *others], exit=False).result
    for test, why in result.skipped:
        print(f"skipped: {test.id()}: {why}")
    sys.exit(not result.wasSuccessful())
