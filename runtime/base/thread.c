/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <stdio.h>

#define NAME_BYTES 16 /* of the kernel, with the zero */
#define SMALL_STACK ((size_t)256 << 10)

static int start(pthread_t *thread, const pthread_attr_t *attributes, const char *name,
                 void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    char shown[NAME_BYTES];
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(thread, attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return code;
    snprintf(shown, sizeof shown, "%s", name);
    pthread_setname_np(*thread, shown);
    return 0;
}

int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
    return start(thread, NULL, name, run, argument);
}

int thread_start_small(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SMALL_STACK);
    int code = start(thread, &attributes, name, run, argument);
    pthread_attr_destroy(&attributes);
    return code;
}
