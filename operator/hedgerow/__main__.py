"""Main: `python -m hedgerow`, for where the console script is not on PATH."""

from hedgerow.cli import main

if __name__ == "__main__":
    main()
