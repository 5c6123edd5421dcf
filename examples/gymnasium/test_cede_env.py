"""Tests of cede_env, run by cmd/cede with the path of the command and of a scenario."""

import json
import subprocess
import sys

from cede_env import CedeEnv, StepError

program, scenario = sys.argv[1:]


def run():
    return json.loads(subprocess.run([program, "sim", "run", scenario, "-p", "default", "-o", "json"], capture_output=True).stdout)


def play(env, choose, **options):
    observation, _ = env.reset(**options)
    hooks, evicted, ended = [], 0, False
    while not ended:
        hooks.append(observation["hook"])
        observation, reward, ended, truncated, info = env.step(choose(observation))
        assert not truncated
        evicted -= reward
    return hooks, evicted, info["result"]


def echo(observation):
    """Answer as the policy, in full."""
    return observation["answer"]


def youngest(observation):
    """Evict the candidate that started last, and take the first option."""
    if observation["hook"] == "ScoreOptions":
        return {"option": 0}
    return {"score": [-float(start) for start in observation["columns"]["rows"]["start"]]}


def none(observation):
    """Refuse every eviction."""
    if observation["hook"] == "ScoreOptions":
        return None
    return {"eligible": [False] * len(observation["columns"]["rows"]["priority"])}


want = run()
env = CedeEnv(scenario, policy="default", program=program)
hooks, evicted, result = play(env, echo)
assert result == want, "answers of the policy lead to another result"
assert evicted == want["metrics"]["victims"] > 0, (evicted, want["metrics"]["victims"])
assert play(env, lambda _: None) == (hooks, evicted, result), "a second episode differs"

full = CedeEnv(scenario, policy="default", program=program, full=True)
first = play(full, youngest)
assert first == play(full, youngest), "the same answers lead to another result"
assert first[2] != want, "other answers lead to the same result"

assert play(full, none)[2]["metrics"]["victims"] == 0, "ineligible candidates were evicted"

some = CedeEnv(scenario, policy="default", program=program, hooks=["ScoreOptions"])
assert set(play(some, lambda _: None)[0]) == {"ScoreOptions"}
assert play(some, lambda _: None)[2] == want



def failure(action):
    """Return the error of a call."""
    try:
        action()
    except StepError as error:
        return str(error)
    raise AssertionError("no error")


# An answer that is refused ends the episode; a value that JSON cannot hold does not.
for invalid in ({"score": [1.0], "gap": [1]}, [], 0, False, "", {"victims": []}):
    env.reset()
    message = failure(lambda: env.step(invalid))
    assert message.startswith("answer 1: "), (invalid, message)
    assert failure(lambda: env.step(None)) == "the episode has ended: call reset"
env.reset()
for invalid in ({"score": [float("nan")]}, {"score": [float("inf")]}, {"option": {1}}):
    message = failure(lambda: env.step(invalid))
    assert message.startswith("the answer is not valid JSON: "), (invalid, message)
assert env.step(None)[0]["id"] == 2, "a value that JSON cannot hold ended the episode"

play(env, lambda _: None)
assert failure(lambda: env.step(None)) == "the episode has ended: call reset"
assert env.reset(seed=3)[0] == env.reset(seed=3)[0], "a seed is not reproduced"


class Array:
    """An array as NumPy has it."""

    def __init__(self, values):
        self.values = values

    def tolist(self):
        return self.values


assert play(full, lambda o: {k: Array(v) for k, v in youngest(o).items()}) == first, "arrays are not written as lists"

message = failure(lambda: CedeEnv("missing.yaml", program=program).reset())
assert "missing.yaml: no such file" in message, message
message = failure(lambda: CedeEnv(scenario, program="no-such-program").reset())
assert message.startswith("program 'no-such-program' not found: "), message
for e in (env, full, some):
    e.close()
print("ok")
