"""Compares the order of victims of a policy with random ones.

    python3 random_agent.py SCENARIO [EPISODES]
"""

import random
import sys

from cede_env import CedeEnv


def episode(env, choose):
    """Play one run and return the number of evictions and the share of useful work."""
    observation, _ = env.reset()
    total, ended = 0, False
    while not ended:
        observation, reward, ended, _, info = env.step(choose(observation))
        total += reward
    return -total, info["result"]["metrics"].get("goodput")


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: python3 random_agent.py SCENARIO [EPISODES]")
    scenario, episodes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    env = CedeEnv(scenario, policy="default", full=True, hooks=["SelectVictims"])
    print("default: %d evicted, goodput %s" % episode(env, lambda _: None))
    for seed in range(1, episodes + 1):
        dice = random.Random(seed)
        choose = lambda o: {"score": [dice.random() for _ in o["columns"]["rows"]["priority"]]}
        print("random %d: %d evicted, goodput %s" % ((seed,) + episode(env, choose)))
    env.close()


if __name__ == "__main__":
    main()
