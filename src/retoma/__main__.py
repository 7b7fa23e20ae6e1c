"""``python -m retoma``."""

from retoma.cli.main import main

if __name__ == "__main__":
    main()
