import json
import os
import re
import shlex
import subprocess
import urllib.request

import pytest

COMMAND = os.environ.get("EMULATOR_COMMAND", "npx passport-oauth-app emulator --port 0 --quiet")


class Emulator:
    """The emulator, driven over HTTP."""

    def __init__(self, url):
        self.url = url

    def control(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_emulator/{path}", data, method=method)
        with urllib.request.urlopen(request) as response:
            return json.load(response)


@pytest.fixture(scope="session")
def started_emulator():
    process = subprocess.Popen(shlex.split(COMMAND), stdout=subprocess.PIPE, text=True)
    url = next(found[1] for line in process.stdout if (found := re.search(r"listens on (\S+),", line)))
    yield Emulator(url)
    process.terminate()
    process.wait()


@pytest.fixture
def emulator(started_emulator):
    started_emulator.control("POST", "reset")
    return started_emulator
