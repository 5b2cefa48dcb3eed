/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <stdio.h>

#define NAME_BYTES 16 /* of the kernel, with the zero */

int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    char shown[NAME_BYTES];
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return code;
    snprintf(shown, sizeof shown, "%s", name);
    pthread_setname_np(*thread, shown);
    return 0;
}
