"""Bandits: players that choose an action and learn from its reward, and the wheel problem.

>>> import mnp.bandits
>>> player = mnp.bandits.Player(dims=1, actions=2, agent="uniform", seed=1)
>>> action = player.choose([0.3])
>>> player.observe([0.3], action, 1.0)
>>> mnp.bandits.wheel(agent="uniform", trials=2, steps=50).uniform_cumulative > 0
True
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _structs as c
from ._arrays import DRAWS_MAX, address, numbers, path, real, text, whole
from ._context import current, opened
from ._library import lib
from .data import column_names
from .errors import InvalidError, UnsupportedError
from .posterior import condition_of, seed_of

if TYPE_CHECKING:
    from .process import Process

INT32_MAX = 2**31 - 1
POLICIES = ("thompson", "greedy", "ucb")


def agents() -> dict[str, str]:
    """The agents and a line about each.

    >>> import mnp.bandits
    >>> "uniform" in mnp.bandits.agents()
    True
    """
    about = ctypes.c_char_p()
    out: dict[str, str] = {}
    while (name := lib.mnp_bandit_agent(len(out), ctypes.byref(about))) is not None:
        out[name.decode()] = about.value.decode()
    return out


class Wheel(NamedTuple):
    """Regret on wheels in percent of the uniform agent's: of all steps, and of the last ones."""

    cumulative: float
    cumulative_sd: float  #: over trials; NaN for a single one, as are the others
    cumulative_se: float
    simple: float
    simple_sd: float
    simple_se: float
    uniform_cumulative: float  #: what 100 percent are: regret per step
    uniform_simple: float
    seconds: float  #: of one trial on one core
    moved: float  #: refine, exact: share of the drawings for which particles moved
    regret: np.ndarray  #: (trials, steps)
    actions: np.ndarray  #: (trials, steps), int32


class Replay(NamedTuple):
    """How an agent would have fared on a log of decisions."""

    events: int
    actions: int
    matched: float  #: events that counted, mean over the passes
    reward: float  #: per matched event
    se: float
    sd: float  #: over the passes; NaN for one
    log_reward: float  #: of the policy that made the log
    log_se: float


class Played(NamedTuple):
    """What happened in `play`."""

    actions: np.ndarray  #: (n,), int
    rewards: np.ndarray  #: (n,)


# ---- options -------------------------------------------------------------------------------------


def _options(
    model: Process | str | os.PathLike | None,
    *,
    agent: str | None = None,
    options: str | None = None,
    policy: str = "thompson",
    width: float = 1.0,
    draws: int = 20,
    initial_pulls: int = 2,
    refresh: int = 0,
    condition: str = "network",
    gradients: int | None = None,
    seed: int = 0,
) -> tuple[c.mnp_bandit_opts, Any]:
    """The options, and the handle of the model or None."""
    if policy not in POLICIES:
        raise InvalidError(f"policy is {policy!r}: give one of {', '.join(POLICIES)}")
    handle, file = None, None
    if isinstance(model, (str, os.PathLike)):
        model, file, name = _opened(model)
        if name is not None and agent not in (None, name):
            raise InvalidError(f"the file is an agent {name}: agent={agent!r} cannot play by it")
        agent = agent or name
    if model is not None:
        handle = model.handle
    opts = c.mnp_bandit_opts(
        agent=text(agent or "mnp", "agent"),
        agent_options=None if options is None else text(options, "options"),
        policy=policy.encode(),
        width=real(width, "width"),
        draws=whole(draws, "draws", 1, DRAWS_MAX),
        initial_pulls=whole(initial_pulls, "initial_pulls", 0, INT32_MAX) or -1,
        refresh=whole(refresh, "refresh", 0),
        seed=seed_of(seed),
        agent_file=file,
        condition=condition_of(condition),
        gradients=0 if gradients is None else whole(gradients, "gradients", 1),
    )
    return opts, handle


def _opened(file: str | os.PathLike) -> tuple[Process | None, bytes | None, str | None]:
    """A model; or the file of an agent that is trained but no model, and its name."""
    from .process import load

    name, ctx = path(file, "model"), current()
    agent = ctypes.create_string_buffer(64)
    if os.path.isfile(file) and lib.mnp_agent_file(ctx, name, agent, len(agent)):
        return None, name, agent.value.decode()
    return load(file), None, None


# ---- players -------------------------------------------------------------------------------------


class Player:
    """One player for problems of your own: contexts of `dims` numbers, actions 0 to actions - 1.

    model: for agents that need one, "mnp" as it comes: its inputs are the context and a number for
    each action, 1 for the one that was taken, and its output the reward. A name or a file may stand
    for it. agent: see `agents`; options: the agent's own. policy: "thompson", "greedy" or "ucb"
    (width: standard deviations above the mean; draws: functions drawn for a mean). initial_pulls:
    each action so often first. refresh: 0 draws new functions every step.
    """

    def __init__(
        self,
        model: Process | str | os.PathLike | None = None,
        *,
        dims: int,
        actions: int,
        **options: Any,
    ) -> None:
        opts, handle = _options(model, **options)
        self.dims, self.actions = whole(dims, "dims", 1), whole(actions, "actions", 2)
        self._context = current()
        self._handle = self._context.make(
            lib.mnp_player_create,
            handle,
            ctypes.byref(opts),
            self.dims,
            self.actions,
            destroy=lib.mnp_player_destroy,
            keep=True,
        )

    def _x(self, x: Any) -> np.ndarray:
        x = np.atleast_1d(numbers(x, "x"))
        if x.shape != (self.dims,):
            raise InvalidError(f"x has the shape {x.shape}: give ({self.dims},)")
        return x

    def choose(self, x: Any) -> int:
        """The action for a context x (dims,)."""
        x, action = self._x(x), ctypes.c_int64()
        handle = opened(self._handle, "Player")
        self._context.call(lib.mnp_player_act, handle, address(x), ctypes.byref(action))
        return action.value

    def observe(self, x: Any, action: int, reward: float) -> None:
        """The reward of an action in a context x (dims,)."""
        x, action = self._x(x), whole(action, "action", -(2**63))
        handle, reward = opened(self._handle, "Player"), real(reward, "reward")
        self._context.call(lib.mnp_player_observe, handle, address(x), action, reward)

    def close(self) -> None:
        """Frees its memory. Twice is no error."""
        self._handle = None

    def __reduce__(self):
        raise UnsupportedError(
            "a Player neither pickles nor copies: make one again, and let it observe what was seen"
        )

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def play(player: Player, contexts: Any, reward: Callable[[np.ndarray, int], float]) -> Played:
    """Lets a player choose for each context (n, dims) in turn; reward(x, action) pays.

    >>> import numpy as np, mnp.bandits
    >>> player = mnp.bandits.Player(dims=1, actions=2, agent="uniform")
    >>> mnp.bandits.play(player, np.zeros((10, 1)), lambda x, action: action).rewards.shape
    (10,)
    """
    contexts = numbers(contexts, "contexts")
    if contexts.ndim == 1:
        contexts = contexts.reshape(-1, 1)
    actions = np.empty(len(contexts), np.int64)
    rewards = np.empty(len(contexts))
    for k, x in enumerate(contexts):
        actions[k] = player.choose(x)
        rewards[k] = reward(x, int(actions[k]))
        player.observe(x, int(actions[k]), rewards[k])
    return Played(actions, rewards)


# ---- the wheel, and logs -------------------------------------------------------------------------


def wheel(
    model: Process | str | os.PathLike | None = None,
    *,
    delta: float = 0.5,
    trials: int = 20,
    steps: int = 2000,
    last: int = 500,
    progress: Callable[[int, int], Any] | None = None,
    **options: Any,
) -> Wheel:
    """Plays `trials` wheels of radius delta, as `mnp bandit` does; options as of a `Player`."""
    opts, handle = _options(model, **options)
    trials, steps = whole(trials, "trials", 1, INT32_MAX), whole(steps, "steps", 1, INT32_MAX)
    last, delta = whole(last, "last", 1), real(delta, "delta")
    ctx = current()
    regret = np.empty((trials, steps))
    actions = np.empty((trials, steps), np.int32)
    opts.delta, opts.trials, opts.steps, opts.last = delta, trials, steps, last
    opts.regret, opts.actions = address(regret), address(actions)
    opts.progress = ctx.progress(progress)
    out = c.mnp_bandit_scores()
    ctx.call(lib.mnp_bandit_wheel, ctx, handle, ctypes.byref(opts), ctypes.byref(out))
    scores = {name: getattr(out, name) for name in Wheel._fields[:-2]}
    return Wheel(**scores, regret=regret, actions=actions)


def wheel_contexts(delta: float = 0.5, *, seed: int = 0, trial: int = 0, steps: int = 2000):
    """The contexts of a trial of `wheel`: (steps, 2)."""
    steps, trial = whole(steps, "steps", 1, INT32_MAX), whole(trial, "trial", 0, INT32_MAX)
    delta, seed = real(delta, "delta"), seed_of(seed)
    ctx, x = current(), np.empty((steps, 2))
    ctx.call(lib.mnp_bandit_wheel_contexts, ctx, delta, seed, trial, steps, address(x))
    return x


def replay(
    log: str | os.PathLike,
    model: Process | str | os.PathLike | None = None,
    *,
    x: str | Sequence[str] | None = None,
    action: str | None = None,
    reward: str | None = None,
    propensity: str | None = None,
    passes: int = 1,
    **options: Any,
) -> Replay:
    """How an agent would have fared on a CSV log of decisions, as `mnp bandit --log` says it. x,
    action, reward, propensity: names of columns; options as of a `Player`."""
    opts, handle = _options(model, **options)
    how = c.mnp_log_opts(
        context_columns=column_names(x, "x"),
        action_column=column_names(action, "action"),
        reward_column=column_names(reward, "reward"),
        propensity_column=column_names(propensity, "propensity"),
        passes=whole(passes, "passes", 1),
    )
    out = c.mnp_replay_scores()
    ctx = current()
    ctx.call(
        lib.mnp_bandit_replay,
        ctx,
        path(log, "log"),
        handle,
        ctypes.byref(opts),
        ctypes.byref(how),
        ctypes.byref(out),
    )
    return Replay(*(getattr(out, name) for name in Replay._fields))


__all__ = ["Played", "Player", "Replay", "Wheel", "agents", "play", "replay", "wheel"]
__all__ += ["wheel_contexts"]
