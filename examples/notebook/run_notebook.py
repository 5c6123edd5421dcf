"""Runs the code cells of a notebook in order, without Jupyter.

    python3 run_notebook.py NOTEBOOK
"""

import json
import sys


def main():
    names = {"__name__": "notebook"}
    with open(sys.argv[1], encoding="utf-8") as file:
        cells = [c for c in json.load(file)["cells"] if c["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    print(f"{len(cells)} cells")


if __name__ == "__main__":
    main()
