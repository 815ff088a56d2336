"""The organization's rate window, as the API reports it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping


class RateWindow:
    """What is left of the window, as the newest answer told it, less what was started since."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._started = 0
        self._left = float("inf")
        self._ends_at = 0.0

    def stop(self) -> None:
        """From now on no search may start."""
        self._stopped.set()

    def wait_and_count(self) -> bool:
        """Waits while the window is used up, and counts a search that starts now. Returns whether it may start."""
        while not self._stopped.is_set():
            with self._lock:
                wait_s = 0.0 if self._left > 0 else self._ends_at - time.monotonic()
                if wait_s <= 0:
                    self._started += 1
                    self._left -= 1
                    return True
            self._stopped.wait(wait_s)
        return False

    def read(self, headers: Mapping[str, str], number: int) -> None:
        """Reads the state that the answer to the search with this number has, from 1."""
        state = re.search(r"r=(\d+);t=(\d+)", headers.get("ratelimit", ""))
        if state:
            with self._lock:
                self._left = int(state[1]) - max(0, self._started - number)
                self._ends_at = time.monotonic() + int(state[2])
