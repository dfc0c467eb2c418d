"""numexpr, without the threads that it starts when it is imported: here the Executor alone runs things in parallel."""

from __future__ import annotations

import os

_SINGLE = {"NUMEXPR_MAX_THREADS": "1", "NUMEXPR_NUM_THREADS": "1"}  # and so it has nothing to tell the log either
_before = {name: os.environ.get(name) for name in _SINGLE}
os.environ.update(_SINGLE)
try:
    import numexpr
    from numexpr import expressions
finally:
    for _name, _value in _before.items():
        if _value is None:
            del os.environ[_name]
        else:
            os.environ[_name] = _value
numexpr.set_num_threads(1)  # where somebody has imported it before

__all__ = ["expressions", "numexpr"]
