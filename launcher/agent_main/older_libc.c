/* SPDX-License-Identifier: Apache-2.0 */
/* What glibc has only since 2.36, so that the agent that is built with a newer one also runs where
 * 2.34 is (the libevent inside wants random numbers). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)

int pidfd_open(pid_t pid, unsigned flags)
{
    return (int)syscall(SYS_pidfd_open, pid, flags);
}

void arc4random_buf(void *bytes, size_t length)
{
    uint8_t *at = bytes;
    while (length > 0) {
        ssize_t got = getrandom(at, length < 256 ? length : 256, 0);
        if (got > 0) {
            at += got;
            length -= (size_t)got;
        }
    }
}

uint32_t arc4random(void)
{
    uint32_t number;
    arc4random_buf(&number, sizeof(number));
    return number;
}

#pragma GCC visibility pop
