/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors: every new one is close-on-exec, and no function returns EINTR. And whether a
 * file has changed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

#define AUTO_FD __attribute__((cleanup(fd_close)))
#define AUTO_FD_PAIR __attribute__((cleanup(fd_close_pair)))

void fd_close(int *fd);                                /* closes if >= 0, sets -1, keeps errno */
void fd_close_pair(int (*ends)[2]);                    /* for AUTO_FD_PAIR */
int fd_open(const char *path, int flags, mode_t mode); /* open() without EINTR */
/* Opens a file for reading if it is a regular one; -1 and errno. Of a device or a pipe, already the
 * opening can wait, or have an effect. */
int fd_open_regular(const char *path);
int fd_openat(int folder, const char *path, int flags); /* openat() without EINTR */
int fd_dup2(int from, int to);                          /* dup2() without EINTR */
/* Closes all descriptors above 2 except `keep` (> 2). */
void fd_close_others(int keep);
/* Gives the calling thread a table of its own, with /dev/null as 0 to 2 and `keep` (> 2), and
 * nothing else. -1: the kernel is older than 5.9, or a sandbox refuses it; then nothing has
 * changed. */
int fd_own_table(int keep);
/* Makes room for so many descriptors. When several threads share the table, the kernel waits some
 * 10 ms whenever it grows: so it grows once, and best before them. False: the limit is lower. */
bool fd_reserve(size_t count);
int fd_nonblock(int fd);        /* -1 and errno */
int fd_pipe(int ends[2]);       /* O_CLOEXEC; -1 and errno */
int fd_socketpair(int ends[2]); /* AF_UNIX stream, O_CLOEXEC, blocking; -1 and errno */
int fd_write_all(int fd, const void *bytes, size_t length); /* blocking fd; -1 and errno */
/* The same for a socket, without SIGPIPE. A non-blocking socket must have room for all bytes. */
int fd_send_all(int fd, const void *bytes, size_t length);
/* Whether the connect() of a non-blocking socket that has become writable has failed: its errno. */
int fd_connect_errno(int fd);
ssize_t fd_read(int fd, void *bytes, size_t length); /* read() without EINTR */
/* Reads up to `length` bytes from `offset` on, fewer only before the end or before what cannot be
 * read; -1 and errno. */
ssize_t fd_pread(int fd, void *bytes, size_t length, off_t offset);
ssize_t fd_write(int fd, const void *bytes, size_t length); /* write() without EINTR */

/* Appends all up to the end to `out`, which keeps what fits. -1 and errno; EFBIG: its limit. */
int fd_read_rest(int fd, struct buf *out);
/* Appends the whole file to `out`, whose limit bounds the size. The error names the path. */
int fd_read_file(const char *path, struct buf *out, struct error *err);

/*
 * The facts of stat(2) that change when the content of a file changes, so that a program need not
 * read the file again. If the clock of the file system is coarse, this misses some changes. These
 * are changes in place that keep the size and come within one tick after the file was read.
 */
struct file_stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

/* If the file does not exist, the stamp is all zero. */
struct file_stamp file_stamp_of(const char *path);
struct file_stamp file_stamp_of_stat(const struct stat *status);
bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b);
