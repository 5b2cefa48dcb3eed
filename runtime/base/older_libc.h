/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that glibc has only since 2.32, 2.34 and 2.36. Where libc lacks one of them, the build
 * includes this file before all others (cmake/dependencies.cmake). So a build on an older system
 * gives programs for all newer ones.
 */
#pragma once

#include <features.h>
#include <sys/types.h>

#if !__GLIBC_PREREQ(2, 32)
const char *sigabbrev_np(int number);
const char *strerrordesc_np(int errnum);
#endif
#if !__GLIBC_PREREQ(2, 34)
#define CLOSE_RANGE_UNSHARE 2u
int close_range(unsigned first, unsigned last, int flags);
#endif
#if !__GLIBC_PREREQ(2, 36)
int pidfd_open(pid_t pid, unsigned flags);
#endif
