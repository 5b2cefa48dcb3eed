# SPDX-License-Identifier: Apache-2.0
"""A browser without a window: Chromium, over the pipe of its DevTools protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

from ground import patient

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
           "--disable-breakpad", "--disable-crash-reporter", "--no-first-run", "--no-default-browser-check", "--mute-audio",
           "--force-color-profile=srgb", "--remote-debugging-pipe"]


class Browser:
    """One page at a time. What its console says, and what it could not load, goes to `problems`."""

    session = target = None

    def __init__(self, folder):
        self.folder, self.number, self.problems, self.read, self.rest = folder, 0, [], None, b""
        theirs_in, self.write = os.pipe()
        self.read, theirs_out = os.pipe()

        def place():  # descriptors 3 and 4 are the pipe
            low_in, low_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(low_in, 3)
            os.dup2(low_out, 4)

        env = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder, "DBUS_SESSION_BUS_ADDRESS": ""}
        with open(os.path.join(folder, "browser.log"), "wb") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
                [CHROMIUM, *OPTIONS, f"--user-data-dir={folder}/profile", "about:blank"], env=env, close_fds=False,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=place, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)

    def begin(self):
        """A page that knows nothing of the one before."""
        self.problems = []
        self.target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def end(self):
        self.session = None
        self.ask("Target.closeTarget", targetId=self.target)

    def has_ended(self):
        return self.process.poll() is not None

    def owns(self, process):
        """Whether this is one of its processes. Some leave its session."""
        try:
            return os.getsid(process.pid) == self.process.pid or self.folder.encode() in process.read("cmdline")
        except ProcessLookupError:
            return True

    def messages(self, until):
        """Those that have come; waits for one."""
        while b"\0" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.read, 1 << 16)
            if not more:
                raise EOFError("the browser has ended")
            self.rest += more
        *whole, self.rest = self.rest.split(b"\0")
        return [json.loads(one) for one in whole]

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        until, answer = time.monotonic() + patient(60), None
        while answer is None:
            for one in self.messages(until):
                if one.get("id") == self.number:
                    answer = one
                elif self.session and one.get("sessionId") == self.session:
                    self.take(one)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def take(self, event):
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"])
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(params["args"])
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"])

    def open(self, url):
        answer = self.ask("Page.navigate", url=url)
        if answer.get("errorText"):
            raise RuntimeError(answer["errorText"])

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def look(self, width, height, dark=False, mobile=False, scale=1):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)
        self.ask("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        try:
            self.session = None
            self.ask("Browser.close")
        except (EOFError, OSError, TimeoutError):
            pass
        try:
            self.process.wait(patient(20))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        os.close(self.write)
