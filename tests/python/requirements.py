"""Prints the dependencies and the extras of pyproject.toml, one per line."""

import pathlib
import tomllib

project = tomllib.loads(pathlib.Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"].values()
needed = [*project["dependencies"], *(line for extra in extras for line in extra)]
print(*(line for line in needed if not line.startswith(project["name"])), sep="\n")
