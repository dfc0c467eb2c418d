"""``python -m moraine_core`` is ``moraine``."""

from moraine_core.cli import main

if __name__ == "__main__":
    main()
