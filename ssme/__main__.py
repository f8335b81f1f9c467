"""``python -m ssme`` is the command line."""

from ssme.cli import main

if __name__ == "__main__":
    main()
