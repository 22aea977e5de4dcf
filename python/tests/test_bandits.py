"""Bandits: the wheel and logs as the command plays them, and players that learn."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from curve_tables import HERE, run

import mnp
from mnp import bandits

AGENTS = [(None, "uniform", "thompson"), ("wheel-mnp-t1", "mnp", "ucb")]


@pytest.mark.parametrize(("model", "agent", "policy"), AGENTS)
def test_wheel_equals_the_command(model, agent, policy, tmp_path):
    files = []
    if model:
        mnp.load(model).save(tmp_path / "m.safetensors")
        files = ["m.safetensors"]
    options = ("--trials", 2, "--steps", 25, "--last", 10, "--delta", 0.7, "--policy", policy)
    said = run(tmp_path, "bandit", *files, "--agent", agent, *options, "--seed", 4, "--json")
    there = json.loads(said.splitlines()[-1])
    how = {"agent": agent, "policy": policy, "seed": 4, "delta": 0.7}
    here = bandits.wheel(model, trials=2, steps=25, last=10, **how)
    for name in ("cumulative", "cumulative_sd", "simple", "simple_se", "uniform_cumulative"):
        assert getattr(here, name) == there[name], name
    assert here.regret.shape == here.actions.shape == (2, 25)
    share = here.regret.sum(axis=1).mean() / (25 * here.uniform_cumulative)
    assert np.isclose(100 * share, here.cumulative)


def test_wheel_contexts():
    x = bandits.wheel_contexts(0.5, seed=1, steps=400)
    assert x.shape == (400, 2) and np.all(np.hypot(*x.T) <= 1)
    inside = np.mean(np.hypot(*x.T) < 0.5)
    assert abs(inside - 0.25) < 0.1  # a quarter of the disc's area


def test_replay_equals_the_command(tmp_path):
    log = HERE / "examples" / "data" / "offers.csv"
    words = ("--log", log, "--agent", "gp", "--x", "age,basket", "--passes", 2)
    said = run(tmp_path, "bandit", *words, "--seed", 2, "--json")
    there = json.loads(said.splitlines()[-1])
    here = bandits.replay(log, agent="gp", x=["age", "basket"], passes=2, seed=2)
    for name in here._fields:
        assert getattr(here, name) == there[name], name


def test_a_player_learns():
    """Action 1 pays more where x > 0, action 0 elsewhere."""
    rng = np.random.default_rng(5)
    contexts = rng.uniform(-1, 1, (120, 1))

    def reward(x: np.ndarray, action: int) -> float:
        return float(x[0]) if action else float(-x[0])

    learner = bandits.play(bandits.Player(dims=1, actions=2, agent="gp"), contexts, reward)
    blind = bandits.play(bandits.Player(dims=1, actions=2, agent="uniform"), contexts, reward)
    best = (contexts[:, 0] > 0).astype(int)
    assert np.mean(learner.actions[60:] == best[60:]) > 0.5 + 4 * 0.5 / 60**0.5  # no chance
    assert learner.rewards.sum() > blind.rewards.sum() + 20


def test_same_seed_same_actions():
    contexts = np.linspace(-1, 1, 20).reshape(-1, 1)

    def acts(seed: int) -> list[int]:
        player = bandits.Player(dims=1, actions=3, agent="uniform", seed=seed)
        return bandits.play(player, contexts, lambda x, a: float(a)).actions.tolist()

    assert acts(1) == acts(1) != acts(2)


def test_bad_input():
    player = bandits.Player(dims=2, actions=2, agent="uniform")
    for call in (
        lambda: player.choose([1.0]),
        lambda: player.observe([1.0, 2.0], 2, 0.0),
        lambda: player.observe([1.0, np.nan], 0, 0.0),
        lambda: player.observe([1.0, 2.0], 0, np.inf),
        lambda: bandits.Player(dims=2, actions=2, agent="nobody"),
        lambda: bandits.Player(dims=2, actions=2),  # an agent that needs a model
        lambda: bandits.Player(dims=2, actions=2, agent="uniform", policy="bold"),
        lambda: bandits.Player("mnp-monotonic", dims=2, actions=2),  # a model of other inputs
        lambda: bandits.wheel(agent="uniform", delta=2, trials=1, steps=1),
        lambda: bandits.wheel(agent="uniform", trials=0),
        lambda: bandits.wheel(agent="uniform", steps=1.5),
        lambda: bandits.wheel_contexts(steps=-1),
        lambda: bandits.wheel_contexts(trial="a"),
        lambda: bandits.wheel_contexts("a"),
        lambda: bandits.replay(None),
        lambda: bandits.replay("log.csv", agent="uniform", action=3),
        lambda: bandits.Player(dims="a", actions=2, agent="uniform"),
        lambda: bandits.Player(dims=2, actions=2, agent=5),
        lambda: bandits.Player(dims=2, actions=2, agent="uniform", draws=2.5),
        lambda: bandits.Player(dims=2, actions=2, agent="uniform", condition="guess"),
        lambda: player.observe([1.0, 2.0], "left", 0.0),
        lambda: player.observe([1.0, 2.0], 0, "much"),
    ):
        with pytest.raises(mnp.errors.InvalidError):
            call()
    for action in (7, -3, 2**40):
        with pytest.raises(mnp.errors.InvalidError, match=f"no action {action}, only 0 to 1"):
            player.observe([1.0, 2.0], action, 0.0)
    for copied in (pickle.dumps, copy.copy):
        with pytest.raises(mnp.errors.UnsupportedError, match="neither pickles nor copies"):
            copied(player)
    player.close()
    with pytest.raises(mnp.errors.ClosedError):
        player.choose([1.0, 2.0])
