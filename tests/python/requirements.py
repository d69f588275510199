"""Prints what the package and its tests need, one a line: the dependencies and the extras of pyproject.toml."""

import pathlib
import tomllib

project = tomllib.loads(pathlib.Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"].values()
needed = [*project["dependencies"], *(line for extra in extras for line in extra)]
print(*(line for line in needed if not line.startswith(project["name"])), sep="\n")
