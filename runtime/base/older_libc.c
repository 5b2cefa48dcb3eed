/* SPDX-License-Identifier: Apache-2.0 */
#include "base/older_libc.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if !__GLIBC_PREREQ(2, 32)
const char *sigabbrev_np(int number)
{
#define NAME(name) [SIG##name] = #name
    static const char *const names[] = {
        NAME(HUP),  NAME(INT),    NAME(QUIT), NAME(ILL),  NAME(TRAP),   NAME(ABRT), NAME(BUS),
        NAME(FPE),  NAME(KILL),   NAME(USR1), NAME(SEGV), NAME(USR2),   NAME(PIPE), NAME(ALRM),
        NAME(TERM), NAME(STKFLT), NAME(CHLD), NAME(CONT), NAME(STOP),   NAME(TSTP), NAME(TTIN),
        NAME(TTOU), NAME(URG),    NAME(XCPU), NAME(XFSZ), NAME(VTALRM), NAME(PROF), NAME(WINCH),
        NAME(POLL), NAME(PWR),    NAME(SYS),
    };
#undef NAME
    return number > 0 && (size_t)number < sizeof(names) / sizeof(names[0]) ? names[number] : NULL;
}

/* strerror() gives a constant text for each number that has one. */
const char *strerrordesc_np(int errnum)
{
    return strerror(errnum);
}
#endif

#if !__GLIBC_PREREQ(2, 34)
#ifndef SYS_close_range
#define SYS_close_range 436 /* of all architectures, as all numbers since 424 */
#endif

int close_range(unsigned first, unsigned last, int flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}
#endif

/*
 * A C++ library that was built with 2.30 or newer waits by these. Here they wait as it did before:
 * if the time of the day is set meanwhile, a wait may end early or late, and
 * std::condition_variable then looks at its own clock.
 */
#if __GLIBC_PREREQ(2, 30) && !__GLIBC_PREREQ(2, 34)
static struct timespec on_wall_clock(clockid_t clock, const struct timespec *end)
{
    struct timespec now, wall;
    clock_gettime(clock, &now);
    clock_gettime(CLOCK_REALTIME, &wall);
    wall.tv_sec += end->tv_sec - now.tv_sec;
    wall.tv_nsec += end->tv_nsec - now.tv_nsec;
    if (wall.tv_nsec < 0) {
        wall.tv_nsec += 1000000000;
        wall.tv_sec--;
    } else if (wall.tv_nsec >= 1000000000) {
        wall.tv_nsec -= 1000000000;
        wall.tv_sec++;
    }
    return wall;
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *end)
{
    struct timespec wall = on_wall_clock(clock, end);
    return pthread_cond_timedwait(cond, mutex, &wall);
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *end)
{
    struct timespec wall = on_wall_clock(clock, end);
    return pthread_mutex_timedlock(mutex, &wall);
}
#endif

#if !__GLIBC_PREREQ(2, 36)
int pidfd_open(pid_t pid, unsigned flags)
{
    return (int)syscall(SYS_pidfd_open, pid, flags);
}
#endif
