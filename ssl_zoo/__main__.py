"""``python -m ssl_zoo`` is the command line."""

from ssl_zoo.cli import main

if __name__ == "__main__":
    main()
