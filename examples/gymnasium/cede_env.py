"""A reinforcement-learning environment over `cede sim step`.

CedeEnv has reset and step with the shapes of gymnasium.Env (reset returns an observation and
an info, step an observation, a reward, terminated, truncated and an info), and is a
gymnasium.Env if the package gymnasium is installed. It needs nothing else.

An observation is one decision: a dictionary with hook, columns (what the policy reads), answer
(what the policy would answer) and since (events since the previous decision). An action is an
answer, or None for that of the policy. Arrays and numbers of NumPy are written as lists and
numbers. docs/reference/steps.md describes both.
"""

import json
import subprocess
import tempfile

try:
    from gymnasium import Env
except ImportError:
    Env = object


class StepError(Exception):
    """The command refused an answer or the scenario."""


class CedeEnv(Env):
    """One episode is one run of a scenario.

    reward is a function of the previous observation and the next one, or the result at the
    end; the default is minus the number of evictions. hooks limits the decisions that are
    observed: the policy answers the others itself.
    """

    metadata = {"render_modes": []}

    def __init__(self, scenario, policy=None, program="cede", full=False, hooks=None, reward=None):
        self.command = [program, "sim", "step", scenario]
        if policy:
            self.command += ["-p", policy]
        if full:
            self.command.append("--full")
        self.hooks, self.reward = hooks, reward or (lambda before, after: -after["since"]["evicted"])
        self.process, self.observation, self.errors = None, None, None

    def reset(self, *, seed=None, options=None):
        """Start a run. The seed replaces that of the scenario."""
        self.close()
        command = self.command + ([] if seed is None else ["--seed", str(seed)])
        self.errors = tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        except FileNotFoundError:
            self.close()
            raise StepError("program %r not found: add its folder to PATH, or set program" % command[0]) from None
        start = self._read()
        self.observation = self._advance()
        if self.observation["type"] == "end":
            raise StepError("the run has no decision that is observed: use another scenario, or other hooks")
        return self.observation, {"start": start}

    def step(self, action):
        """Answer the current decision."""
        if self.process is None or self.observation is None or self.observation["type"] != "decision":
            raise StepError("the episode has ended: call reset")
        before = self.observation
        self._write(action)
        self.observation = self._advance()
        ended = self.observation["type"] == "end"
        info = {"result": self.observation["result"]} if ended else {}
        return self.observation, self.reward(before, self.observation), ended, False, info

    def close(self):
        """End the process of a run."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        if self.errors is not None:
            self.errors.close()
        self.process, self.observation, self.errors = None, None, None

    def _advance(self):
        """Return the next line that is observed. Its since covers skipped decisions too."""
        total = {}
        while True:
            line = self._read()
            for name, n in line["since"].items():
                total[name] = total.get(name, 0) + n
            if line["type"] == "end" or self.hooks is None or line["hook"] in self.hooks:
                line["since"] = total
                return line
            self._write(None)

    def _read(self):
        text = self.process.stdout.readline()
        line = json.loads(text) if text else {"type": "error", "message": self._failure()}
        if line["type"] == "error":
            self.close()
            raise StepError(line["message"])
        return line

    def _failure(self):
        """Return the error of a command that ended without a last line."""
        self.process.wait()
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").strip() or f"{' '.join(self.process.args)} wrote no line"

    def _write(self, action):
        try:
            text = json.dumps({} if action is None else action, allow_nan=False, default=_plain)
        except (TypeError, ValueError) as error:
            raise StepError(f"the answer is not valid JSON: {error}") from error
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the command has ended; its last line holds the error


def _plain(value):
    """Return an array or a number of NumPy as a list or a number."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a value of JSON")
