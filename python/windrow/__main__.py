"""The command line tool, as ``windrow`` and as ``python -m windrow``."""

import sys

from windrow import _windrow


def main():
    """Does what the arguments of the process say, and ends it."""
    _windrow.main(["windrow", *sys.argv[1:]])


if __name__ == "__main__":
    main()
