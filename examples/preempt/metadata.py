# SPDX-License-Identifier: Apache-2.0
"""What the probes in this folder share: the request to a metadata service, and the answer to hvdrun.

The contract with hvdrun (--preempt-probe):
- Status 0 means that the provider will take this machine away. stdout has "SECONDS reason", or only
  "reason" if the time is not known.
- Status 1 means that there is no notice.
- Any other status means that the probe could not find out. The last line on stderr says why.

A probe never uses a proxy, because the service answers only this machine. HVDRUN_METADATA_URL
replaces the address of the service, for tests and for services at another address.
"""

import datetime
import os
import signal
import sys
import urllib.error
import urllib.request

ANSWER_SECONDS = 2  # for one answer of the service
ALL_SECONDS = 5     # for everything, even if the service sends one byte at a time
BODY_MAX = 1 << 20


class Unclear(Exception):
    """The probe cannot find out. The text says why."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # a metadata service never redirects, so this is another server


class Service:
    def __init__(self, name, base):
        self.name, self.base = name, (os.environ.get("HVDRUN_METADATA_URL") or base).rstrip("/")
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)

    def ask(self, path, headers, method="GET"):
        """(headers, text) of the answer. None: the service answered with status 404."""
        try:
            request = urllib.request.Request(self.base + path, headers=headers, method=method)
            with self.opener.open(request, timeout=ANSWER_SECONDS) as answer:
                body = answer.read(BODY_MAX)
                return answer.headers, body.decode("utf-8", "replace").strip()
        except Unclear:  # out of time
            raise
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    return None
                raise Unclear(f"{self.name} answers {path} with status {error.code}") from None
        except OSError as error:  # URLError is one of them
            reason = getattr(error, "reason", error)
            raise Unclear(f"cannot reach {self.name} at {self.base} ({reason}): "
                          "is this a machine of that provider?") from None
        except Exception as error:  # not an HTTP server: http.client has many errors for this
            raise Unclear(f"{self.name} at {self.base} gives an invalid answer "
                          f"({type(error).__name__})") from None

    def nonsense(self, path, text):
        return Unclear(f"{self.name} gives an answer to {path} that this probe does not understand: {text[:60]!r}")


def seconds_until(when):
    """Seconds from now to a datetime with a time zone, never below 0."""
    return max(0.0, (when - datetime.datetime.now(datetime.timezone.utc)).total_seconds())


def _out_of_time(*_):
    raise Unclear(f"no answer from the metadata service within {ALL_SECONDS} s")


def run(probe):
    """Runs probe() and ends the program. probe() returns None, or (seconds or None, reason)."""
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.setitimer(signal.ITIMER_REAL, ALL_SECONDS)
    try:
        notice = probe()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Unclear as why:
        print(why, file=sys.stderr)
        sys.exit(2)
    except Exception as error:  # a traceback would end with status 1, which means "no notice"
        print(f"error in this probe: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
    if notice is None:
        sys.exit(1)
    seconds, reason = notice
    sys.stdout.reconfigure(errors="backslashreplace")  # this locale may lack characters of the answer
    print(reason if seconds is None else f"{seconds:.0f} {reason}")
    sys.exit(0)
