"""One context of the library for each thread; failures, warnings, logging, Ctrl-C, fork.

The library wants a context, and all that was made with it, used by one thread at a time. So every
thread has a context of its own (`current()`), and each context has a lock: what was made in one
thread may be used in another, and the two then wait for each other. Models and data belong to no
context and are shared freely.

    handle = current().make(lib.mnp_model_load, b"m.safetensors", destroy=lib.mnp_model_destroy)

A fork copies no worker threads. A child process therefore leaves the contexts of before alone, and
makes new ones (`generation`).
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
import warnings
from functools import partial
from threading import get_ident

from . import _structs as c
from ._arrays import whole
from ._library import FOLDER, lib
from .errors import OF_STATUS, ClosedError, Error, Warning

generation = 0  # how many forks ago the program began
_threads = 0
_local = threading.local()


def _forked() -> None:
    global generation
    generation += 1


os.register_at_fork(after_in_child=_forked)


# ---- callbacks -----------------------------------------------------------------------------------

LogCall = dict(c.mnp_ctx_opts._fields_)["log"]
CancelCall = dict(c.mnp_ctx_opts._fields_)["cancel"]
ProgressCall = dict(c.mnp_eval_opts._fields_)["progress"]


def _watch(pending: list):
    """Answers "shall it stop?" for ever. A signal that came in meanwhile is handled right after the
    yield, inside the try: a plain function would be interrupted before its first line."""
    while True:
        try:
            while True:
                yield bool(pending)
        except GeneratorExit:  # the program ends
            return
        except BaseException as error:  # a KeyboardInterrupt: raised again once the call is back
            pending.append(error)


def _passing(pending: list, function, count: int):
    """Takes the arguments of a callback one by one and passes each `count` of them on, until
    something was raised. Signals are handled inside the try, as in `_watch`."""
    given: list = []
    while True:
        try:
            while True:
                given.append((yield 0))
                if len(given) == count and not pending:
                    function(*given[1:])  # the first one is the user's pointer
                if len(given) == count:
                    given.clear()
        except GeneratorExit:
            return
        except BaseException as error:  # from here on nothing is passed: given is of no account
            pending.append(error)


def guarded(kind, pending: list, function):
    """A callback of the library, of the ctypes type `kind`, that calls `function` without the first
    argument. What it raises, and a Ctrl-C meanwhile, is put into `pending`. min(..., key=) hands
    the arguments to the generator without a line of Python in between."""
    passing = _passing(pending, function, len(kind._argtypes_))
    next(passing)
    return kind(partial(min, key=passing.send))


class Callbacks:
    """What one context calls. Models outlive contexts, and may call what these were made with, so
    callbacks are never freed: the next context takes them over (`spare`)."""

    made: list[Callbacks] = []
    spare: list[Callbacks] = []

    def __init__(self) -> None:
        self.made.append(self)
        self.pending: list[BaseException] = []
        self.said: dict[str, None] = {}  # doubts, each once
        watch = _watch(self.pending)
        next(watch)
        self.cancel = CancelCall(watch.send)
        self.log = guarded(LogCall, self.pending, self._log)

    def _log(self, level: int, text: bytes) -> None:
        """A handler that does nothing keeps logging from printing where nobody has set it up."""
        import logging

        line = text.decode("utf-8", "replace")
        if level == c.MNP_LOG_WARN:
            self.said[line] = None
        logger = logging.getLogger("mnp")
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        logger.log(10 * (level + 1), "%s", line)

    @classmethod
    def take(cls) -> Callbacks:
        try:
            return cls.spare.pop()
        except IndexError:
            return cls()

    def give_back(self) -> None:
        self.pending.clear()
        self.said.clear()
        self.spare.append(self)


# ---- contexts ------------------------------------------------------------------------------------


class Context:
    """A mnp_ctx, its lock, and what is to be destroyed once nobody is inside."""

    def __init__(self, threads: int = 0) -> None:
        self.generation = generation
        self.lock = threading.Lock()
        self.owner = 0  # the thread that is inside
        self.callbacks = Callbacks.take()
        self.pending = self.callbacks.pending
        self.garbage: list[tuple] = []
        self._destroy = lib.mnp_ctx_destroy
        calls = self.callbacks
        opts = c.mnp_ctx_opts(threads=threads, log=calls.log, cancel=calls.cancel)
        out = ctypes.c_void_p()
        status = lib.mnp_ctx_create(ctypes.byref(opts), ctypes.byref(out))
        if status:
            raise OF_STATUS[status](lib.mnp_status_name(status).decode())
        self._as_parameter_ = out.value
        self._last_error = lib.mnp_last_error

    def call(self, function, *arguments):
        """A call that returns mnp_status, of this context or of something made with it."""
        if self.generation != generation:
            raise Error("made before a fork: make it again in the child process")
        self.refuse_inside()
        with self.lock:
            self.owner = get_ident()
            try:
                if self.garbage:
                    self.sweep()
                status = function(*arguments)
                if status or self.pending:
                    self._fail(status)
            finally:
                self.owner = 0

    def refuse_inside(self) -> None:
        """The exception for a callback of this context that wants to use it."""
        if self.owner == get_ident():
            raise Error("the library is at work in this thread: do not call it from a callback")

    def _fail(self, status: int) -> None:
        if self.pending:  # what a callback raised, or a signal's handler
            error = self.pending[0]
            self.pending.clear()
            raise error
        text = self._last_error(self).decode("utf-8", "replace")
        raise OF_STATUS.get(status, Error)(in_python(text) or lib.mnp_status_name(status).decode())

    def make(self, function, *arguments, destroy, keep: bool = False) -> Handle:
        """A call that takes the context first and makes a handle in its last argument. keep: of
        those that need the context (predictor, trainer, player, fit, plot)."""
        out = ctypes.c_void_p()
        try:
            self.call(function, self, *arguments, ctypes.byref(out))
        except BaseException:
            if out.value:  # made all the same: a callback raised at the end
                Handle(out.value, destroy, self if keep else None)
            raise
        return Handle(out.value, destroy, self if keep else None)

    def progress(self, function, kind=ProgressCall):
        """A progress callback for the library, without the user's pointer; what it raises comes out
        of the call. Keep it until the call is back."""
        return kind() if function is None else guarded(kind, self.pending, function)

    def doubts(self) -> str:
        """What the library logged as doubtful since the last question, a line each."""
        lines = list(self.callbacks.said)
        self.callbacks.said.clear()
        return "\n".join(lines)

    def discard(self, destroy, address: int) -> None:
        """Destroys at once, or by the next call where somebody is inside."""
        self.garbage.append((destroy, address))
        if self.lock.acquire(False):
            try:
                self.sweep()
            finally:
                self.lock.release()

    def sweep(self) -> None:
        while self.garbage:
            destroy, address = self.garbage.pop()
            destroy(address)

    def __del__(self) -> None:
        if sys is None or sys.is_finalizing() or self.generation != generation:
            return
        address = getattr(self, "_as_parameter_", None)
        if address:
            self.sweep()
            self._destroy(address)
            self.callbacks.give_back()


class Handle:
    """Something the library made, destroyed with the last reference to it. It is passed to calls as
    it is, so that it lives until they return."""

    __slots__ = ("__weakref__", "_as_parameter_", "context", "destroy", "generation", "memo")

    def __init__(self, address: int, destroy, context: Context | None) -> None:
        self._as_parameter_ = address
        self.destroy = destroy
        self.context = context
        self.generation = generation
        self.memo = None  # what was found out about it

    def __del__(self) -> None:
        if sys is None or sys.is_finalizing():
            return
        if self.context is None:
            self.destroy(self._as_parameter_)
        elif self.generation == generation:
            self.context.discard(self.destroy, self._as_parameter_)


def current() -> Context:
    """The context of this thread. Inside a callback of the library it is another one, for a while:
    the usual one is at work."""
    context = getattr(_local, "context", None)
    if context is None or context.generation != generation:
        context = _local.context = Context(_threads)
    elif context.owner == get_ident():
        context = Context(_threads)
    return context


def set_threads(threads: int = 0) -> None:
    """How many worker threads a call uses, in this thread and in those that begin later: 0 means
    all cores. Posteriors of before keep theirs.

    >>> import mnp
    >>> mnp.set_threads(1)
    >>> mnp.set_threads(0)
    """
    global _threads
    threads = whole(threads, "threads", 0, 1024)
    _threads = threads
    _local.context = None


def opened(handle: Handle | None, what: str) -> Handle:
    """The handle, or the exception for a closed one."""
    if handle is None:
        raise ClosedError(f"this {what} is closed")
    return handle


def in_python(text: str) -> str:
    """A line of the library with arguments for the flags of the command: "x=" for "--x "."""
    return re.sub(r"--([a-z]+)( |\b)", lambda m: m[1] + ("=" if m[2] else ""), text)


OURS = os.path.join(FOLDER, "")


def warn(text: str | bytes) -> None:
    """Every line of a text as a warning about the line of the program that called this package."""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    lines = in_python(text).splitlines()
    if not lines:
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OURS):
        level, frame = level + 1, frame.f_back
    for line in lines:
        warnings.warn(line, Warning, stacklevel=level)


def text_of(call, *arguments) -> str:
    """A text that a call prints into a buffer, as snprintf does; it returns the length."""
    length = call(*arguments, None, 0)
    buffer = ctypes.create_string_buffer(length + 1)
    call(*arguments, buffer, length + 1)
    return buffer.value.decode("utf-8", "replace")
