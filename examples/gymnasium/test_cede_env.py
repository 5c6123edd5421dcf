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

try:
    play(env, lambda _: {"score": [1.0], "gap": [1]})
except StepError as error:
    assert "answer 1" in str(error), error
else:
    raise AssertionError("an invalid answer was accepted")
for e in (env, full, some):
    e.close()
print("ok")
