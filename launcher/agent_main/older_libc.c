/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that glibc has only since 2.36 or 2.38. With these, an agent that was built with a
 * newer glibc also runs with glibc 2.34. Since 2.38, a header turns strtol() and similar functions
 * into ones with newer names, which also read binary numbers. This code does not need binary
 * numbers. The statically linked libevent needs the other functions.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if __GLIBC_PREREQ(2, 36)
#include <sys/pidfd.h>
#endif
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)

#if __GLIBC_PREREQ(2, 36) /* an older one has it from base/older_libc.c */
int pidfd_open(pid_t pid, unsigned flags)
{
    return (int)syscall(SYS_pidfd_open, pid, flags);
}
#endif

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

size_t strlcpy(char *restrict to, const char *restrict from, size_t room);

size_t strlcpy(char *restrict to, const char *restrict from, size_t room)
{
    size_t length = strlen(from);
    size_t taken = length < room ? length : room - 1;
    if (room > 0) {
        memcpy(to, from, taken);
        to[taken] = '\0';
    }
    return length;
}

/* NEWER(type, name): defines the newer name of a function with the older one. */
#define NEWER(type, name)                                                            \
    extern type older_##name(const char *text, char **end, int base) __asm__(#name); \
    type __isoc23_##name(const char *text, char **end, int base);                    \
    type __isoc23_##name(const char *text, char **end, int base)                     \
    {                                                                                \
        return older_##name(text, end, base);                                        \
    }

NEWER(long, strtol)
NEWER(long long, strtoll)
NEWER(unsigned long, strtoul)
NEWER(unsigned long long, strtoull)

extern int older_vsscanf(const char *text, const char *format,
                         va_list arguments) __asm__("__isoc99_vsscanf");
int __isoc23_sscanf(const char *text, const char *format, ...);

int __isoc23_sscanf(const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = older_vsscanf(text, format, arguments);
    va_end(arguments);
    return count;
}

#pragma GCC visibility pop
