# SPDX-License-Identifier: Apache-2.0
"""What the probes in this folder share: asking a metadata service, and answering hvdrun.

The contract with hvdrun (--preempt-probe): status 0 and "SECONDS reason" (or "reason", when nobody
says how long) = this machine is going to be taken away; status 1 = it is not; anything else = could
not find out, and the last line on stderr says why.

A service is asked without any proxy: it answers this very machine alone. HVDRUN_METADATA_URL takes
the place of its address, for tests and for services that stand elsewhere.
"""

import datetime
import os
import signal
import sys
import urllib.error
import urllib.request

ANSWER_SECONDS = 2  # for one answer of the service
ALL_SECONDS = 5     # for everything, also against a service that sends byte by byte
BODY_MAX = 1 << 20


class Unclear(Exception):
    """It cannot be found out; the text says why."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # a metadata service never does that: what answers is something else


class Service:
    def __init__(self, name, base):
        self.name, self.base = name, (os.environ.get("HVDRUN_METADATA_URL") or base).rstrip("/")
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)

    def ask(self, path, headers, method="GET"):
        """(headers, text) of the answer; None: 404."""
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
            raise Unclear(f"{self.name} at {self.base} cannot be asked ({reason}): "
                          "is this a machine of that provider?") from None
        except Exception as error:  # no HTTP server: http.client says so in many ways
            raise Unclear(f"{self.name} at {self.base} gives no proper answer "
                          f"({type(error).__name__})") from None

    def nonsense(self, path, text):
        return Unclear(f"{self.name} answers {path} with what is not understood: {text[:60]!r}")


def seconds_until(when):
    """From now to an aware datetime, never below 0."""
    return max(0.0, (when - datetime.datetime.now(datetime.timezone.utc)).total_seconds())


def _out_of_time(*_):
    raise Unclear(f"no answer of the metadata service within {ALL_SECONDS} s")


def run(probe):
    """Ends the program. probe() returns None, or (seconds or None, reason)."""
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.setitimer(signal.ITIMER_REAL, ALL_SECONDS)
    try:
        notice = probe()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Unclear as why:
        print(why, file=sys.stderr)
        sys.exit(2)
    except Exception as error:  # a traceback would end with status 1: "it is not"
        print(f"a fault of this probe: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
    if notice is None:
        sys.exit(1)
    seconds, reason = notice
    sys.stdout.reconfigure(errors="backslashreplace")  # the service's words may be none of this locale
    print(reason if seconds is None else f"{seconds:.0f} {reason}")
    sys.exit(0)
