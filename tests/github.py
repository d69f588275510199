#!/usr/bin/env python3
"""Runs jobs of GitHub workflows on this machine, as far as this project's workflows and actions need it.

It executes the `run` steps of a job and of our composite actions, with their inputs, environment files, conditions and expressions.
Actions of others have stand-ins below. Anything else is an error, so a workflow cannot use a feature that nobody tested.

    tests/github.py WORKFLOW [JOB] --project FOLDER      runs a job in a copy of the folder; WARP is the program (`warp`)

Exit status 0 means that the job succeeded.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
OURS = "OWNER/warp"
"""Stands for the address of this repository in the workflows of others."""

TOKEN = re.compile(r"\s*(?:('(?:[^']|'')*')|(==|!=|&&|\|\||[(),!])|([A-Za-z_][\w.-]*))")


class Expression:
    """Parser and evaluator of an expression: strings, names, `format`, `always`, `failure`, and the operators."""

    def __init__(self, text, names, failed):
        self.names, self.failed, self.tokens, at = names, failed, [], 0
        while text[at:].strip():
            match = TOKEN.match(text, at)
            if not match:
                raise ValueError(f"cannot read the expression {text!r}")
            self.tokens.append(match[0].strip())
            at = match.end()

    def take(self, *wanted):
        return self.tokens.pop(0) if self.tokens and (not wanted or self.tokens[0] in wanted) else None

    def value(self):
        found = self.either()
        if self.tokens:
            raise ValueError(f"cannot read {self.tokens} in an expression")
        return found

    def either(self):
        found = self.both()
        while self.take("||"):
            right = self.both()
            found = found or right
        return found

    def both(self):
        found = self.compared()
        while self.take("&&"):
            right = self.compared()
            found = found and right
        return found

    def compared(self):
        found = self.single()
        if operator := self.take("==", "!="):
            return (found == self.single()) == (operator == "==")
        return found

    def single(self):
        token = self.take()
        if token == "!":
            return not self.single()
        if token and token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if token and self.take("("):
            arguments = []
            while not self.take(")"):
                arguments.append(self.either())
                self.take(",")
            return {"format": lambda text, *rest: text.format(*rest), "always": lambda: True, "failure": lambda: self.failed}[token](*arguments)
        if token not in self.names:
            raise ValueError(f"nothing is called {token!r}. Known names: {', '.join(sorted(self.names))}")
        return self.names[token]


def filled(text, names, failed=False):
    """Returns a text with the values of its expressions."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda found: str(Expression(found[1], names, failed).value()), str(text), flags=re.DOTALL)


def read(path):
    """Returns a YAML file with texts as its only values, because GitHub reads `on` and `off` as texts."""
    return yaml.load(Path(path).read_text(), yaml.BaseLoader)


class Runner:
    """One job: its workspace, environment, uploaded artefacts, and the actions that it used."""

    def __init__(self, workspace, scratch, environment=None, github=None):
        self.workspace, self.scratch = Path(workspace), Path(scratch)
        self.artefacts, self.used = self.scratch / "artefacts", []
        (self.scratch / "temp").mkdir(parents=True)
        self.environment = {**os.environ, "CI": "true", "GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(self.scratch / "temp")}
        self.environment |= {"GITHUB_STEP_SUMMARY": str(self.scratch / "summary.md"), **(environment or {})}
        self.github = {"server_url": "https://host.invalid", "repository": "someone/project", "ref_name": "main", "run_id": "1", "token": "none"}
        self.github |= github or {}
        self.output, self.declared = "", {}

    def job(self, path, name=None):
        """Runs a job of a workflow, the only one by default. Returns True if it succeeded."""
        jobs = read(path)["jobs"]
        job = jobs[name or next(iter(jobs))]
        return self.steps(job["steps"], {}, job.get("env", {}), None)[0]

    def names(self, inputs, action, outputs):
        """Returns the names that expressions may use."""
        own = {**self.github, **(action or {})}
        return {
            **{f"github.{name}": value for name, value in own.items()},
            **{f"inputs.{name}": value for name, value in inputs.items()},
            **{f"env.{name}": value for name, value in self.declared.items()},
            **{f"steps.{step}.outputs.{name}": value for step, found in outputs.items() for name, value in found.items()},
            "runner.temp": self.environment["RUNNER_TEMP"],
        }

    def steps(self, steps, inputs, environment, action):
        """Runs steps. Returns their success and the outputs of each."""
        outputs, succeeded = {}, True
        for step in steps:
            names = self.names(inputs, action, outputs)
            condition = str(step.get("if", ""))
            runs_anyway = "always()" in condition or "failure()" in condition
            if (not succeeded and not runs_anyway) or (condition and not Expression(condition, names, not succeeded).value()):
                continue
            own = {name: filled(value, names) for name, value in {**environment, **step.get("env", {})}.items()}
            arguments = {name: filled(value, names) for name, value in step.get("with", {}).items()}
            if "uses" in step:
                done, found = self.use(step["uses"], arguments, own)
            else:
                done, found = self.run(step, names, own, action)
            outputs[step.get("id", "")] = found
            succeeded = succeeded and done
        return succeeded, outputs

    def run(self, step, names, environment, action):
        """Runs the commands of a step in bash, as the runner does. Returns its success and outputs."""
        files = {name: self.scratch / "temp" / name.lower() for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT")}
        for file in files.values():
            file.write_text("")
        own = {**self.environment, **{name: str(file) for name, file in files.items()}, **environment}
        own |= {"GITHUB_ACTION_PATH": action["action_path"]} if action else {}
        folder = self.workspace / filled(step.get("working-directory", "."), names)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", filled(step["run"], names)],
            cwd=folder, env=own, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.output += done.stdout
        pairs = {name: dict(line.split("=", 1) for line in files[name].read_text().splitlines()) for name in ("GITHUB_ENV", "GITHUB_OUTPUT")}
        self.environment |= pairs["GITHUB_ENV"]
        self.declared |= pairs["GITHUB_ENV"]
        for folder in files["GITHUB_PATH"].read_text().splitlines():
            self.environment["PATH"] = f"{folder}:{self.environment['PATH']}"
        return done.returncode == 0, pairs["GITHUB_OUTPUT"]

    def use(self, name, arguments, environment):
        """Runs an action or its stand-in. Returns its success and outputs."""
        self.used.append((name, arguments))
        path, _, version = name.partition("@")
        if path.startswith((f"{OURS}/", "./")):
            folder = ROOT / path.removeprefix(f"{OURS}/")
            action = read(folder / "action.yml")
            return self.composite(action, arguments, environment, {"action_path": str(folder), "action_repository": OURS, "action_ref": version})
        if path == "actions/upload-artifact":
            return self.upload(Path(arguments["path"]), arguments), {}
        if path in ("actions/checkout", "actions/cache", "actions/attest-build-provenance"):
            return True, {}
        raise ValueError(f"the runner has no stand-in for {name}")

    def composite(self, action, arguments, environment, context):
        declared = action["inputs"]
        if unknown := arguments.keys() - declared.keys():
            raise ValueError(f"the action has no inputs {sorted(unknown)}")
        if missing := [name for name, about in declared.items() if about.get("required") == "true" and name not in arguments]:
            raise ValueError(f"the action needs the inputs {missing}")
        inputs = {name: arguments.get(name, about.get("default", "")) for name, about in declared.items()}
        succeeded, outputs = self.steps(action["runs"]["steps"], inputs, environment, context)
        names = self.names(inputs, context, outputs)
        # An output of a step that failed early is empty.
        values = {name: about["value"] for name, about in action.get("outputs", {}).items()}
        return succeeded, {name: filled(value, names) for name, value in values.items() if succeeded}

    def upload(self, path, arguments):
        if not path.exists():
            return arguments.get("if-no-files-found", "warn") != "error"
        to = self.artefacts / arguments["name"]
        shutil.copytree(path, to) if path.is_dir() else shutil.copy(path, to)
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workflow", type=Path)
    parser.add_argument("job", nargs="?")
    parser.add_argument("--project", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        project = shutil.copytree(arguments.project, Path(scratch) / "project")
        runner = Runner(project, Path(scratch) / "job", with_program(Path(scratch)))
        succeeded = runner.job(arguments.workflow, arguments.job)
        print(runner.output, end="")
        print(f"the job {'succeeded' if succeeded else 'FAILED'}, and uploaded", *sorted(file.name for file in runner.artefacts.rglob("*")))
    return not succeeded


def with_program(scratch):
    """Returns a PATH that has the program of WARP as `warp`."""
    (scratch / "bin").mkdir()
    (scratch / "bin/warp").symlink_to(Path(os.environ.get("WARP") or shutil.which("warp") or sys.exit("github.py: no warp. Set WARP")).resolve())
    return {"PATH": f"{scratch / 'bin'}:{os.environ['PATH']}"}


if __name__ == "__main__":
    sys.exit(main())
