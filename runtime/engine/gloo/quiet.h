/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the signals of the program away from Gloo, and those of Gloo away from the program. */
#pragma once

#include <cerrno>

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace shim
{

/* Gloo writes to sockets in a way that raises SIGPIPE if the other end has gone, and the default of
 * that signal ends the program. The signal goes to the thread that writes. So this blocks it there
 * while Gloo runs, and then discards the one that came. The rest of the program is not affected. */
class WithoutPipeSignal
{
  public:
    WithoutPipeSignal()
    {
        sigset_t pending;
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~WithoutPipeSignal()
    {
        const struct timespec at_once = {};
        if (!was_pending_)
            while (sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
            }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

  private:
    sigset_t pipe_, before_;
    bool was_pending_;
};

/* Gloo's thread inherits this: it must not run the program's signal handlers. */
class WithoutSignals
{
  public:
    WithoutSignals()
    {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~WithoutSignals()
    {
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

  private:
    sigset_t before_;
};

} // namespace shim
