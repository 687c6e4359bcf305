"""``python -m sklearn_pate``: the command line."""

from sklearn_pate._cli import main

if __name__ == "__main__":
    raise SystemExit(main(program="python -m sklearn_pate"))
