/* SPDX-License-Identifier: Apache-2.0 */
/* System calls, each with the ways in which it can fail. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <pty.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "fault.h"

#define NEW_FD (FAULT_MFILE | FAULT_NOMEM)
#define LOOKUP (FAULT_IO | FAULT_NOMEM)           /* of a path */
#define ENTRY (LOOKUP | FAULT_NOSPC | FAULT_PERM) /* a folder is changed */

#define CALL(type, failed, name, parameters, arguments, kinds)      \
    type name parameters                                            \
    {                                                               \
        static __typeof__(&name) real;                              \
        if (real == NULL)                                           \
            real = (__typeof__(&name))fault_real(#name);            \
        return fault_now(#name, kinds) ? (failed) : real arguments; \
    }

/* Descriptors */
CALL(int, -1, pipe, (int ends[2]), (ends), NEW_FD)
CALL(int, -1, pipe2, (int ends[2], int flags), (ends, flags), NEW_FD)
CALL(int, -1, socketpair, (int domain, int type, int protocol, int ends[2]),
     (domain, type, protocol, ends), NEW_FD)
CALL(int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol), NEW_FD)
CALL(int, -1, eventfd, (unsigned start, int flags), (start, flags), NEW_FD)
CALL(int, -1, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags), NEW_FD)
CALL(int, -1, timerfd_create, (__clockid_t clock, int flags), (clock, flags), NEW_FD)
CALL(int, -1, epoll_create, (int size), (size), NEW_FD)
CALL(int, -1, epoll_create1, (int flags), (flags), NEW_FD)
CALL(int, -1, inotify_init1, (int flags), (flags), NEW_FD)
CALL(int, -1, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask),
     FAULT_NOSPC | FAULT_NOMEM)
CALL(int, -1, pidfd_open, (pid_t pid, unsigned flags), (pid, flags), NEW_FD | FAULT_PERM)
CALL(int, -1, memfd_create, (const char *name, unsigned flags), (name, flags), NEW_FD)
CALL(int, -1, dup, (int fd), (fd), FAULT_MFILE)
CALL(int, -1, dup2, (int from, int to), (from, to), FAULT_INTR | FAULT_MFILE)
CALL(int, -1, dup3, (int from, int to, int flags), (from, to, flags), FAULT_INTR | FAULT_MFILE)
CALL(int, -1, posix_openpt, (int flags), (flags), NEW_FD | FAULT_NOSPC)
CALL(int, -1, grantpt, (int fd), (fd), FAULT_PERM)
CALL(int, -1, unlockpt, (int fd), (fd), FAULT_PERM)
CALL(int, -1, close_range, (unsigned from, unsigned to, int flags), (from, to, flags),
     FAULT_PERM | FAULT_NOMEM)

/* Waiting */
CALL(int, -1, epoll_ctl, (int set, int op, int fd, struct epoll_event *event), (set, op, fd, event),
     op == EPOLL_CTL_ADD ? FAULT_NOMEM | FAULT_NOSPC : 0)
CALL(int, -1, epoll_wait, (int set, struct epoll_event *events, int max, int timeout),
     (set, events, max, timeout), FAULT_INTR)
CALL(int, -1, poll, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout),
     FAULT_INTR | FAULT_NOMEM)
CALL(pid_t, -1, wait4, (pid_t pid, int *status, int options, struct rusage *usage),
     (pid, status, options, usage), FAULT_INTR)
CALL(pid_t, -1, waitpid, (pid_t pid, int *status, int options), (pid, status, options), FAULT_INTR)
CALL(int, -1, waitid, (idtype_t type, id_t id, siginfo_t *info, int options),
     (type, id, info, options), FAULT_INTR)
CALL(int, -1, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *limit),
     (set, info, limit), FAULT_INTR)

/* Sockets */
CALL(int, -1, bind, (int fd, const struct sockaddr *address, socklen_t length),
     (fd, address, length), FAULT_NOMEM | FAULT_PERM)
CALL(int, -1, listen, (int fd, int backlog), (fd, backlog), FAULT_NOMEM)
CALL(int, -1, connect, (int fd, const struct sockaddr *address, socklen_t length),
     (fd, address, length), FAULT_INTR | FAULT_NOMEM | FAULT_PERM)
CALL(int, -1, accept, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length),
     FAULT_INTR | FAULT_AGAIN | NEW_FD)
CALL(int, -1, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags),
     (fd, address, length, flags), FAULT_INTR | FAULT_AGAIN | NEW_FD)
CALL(int, -1, setsockopt, (int fd, int level, int name, const void *value, socklen_t length),
     (fd, level, name, value, length), FAULT_NOMEM)
CALL(int, EAI_MEMORY, getnameinfo,
     (const struct sockaddr *address, socklen_t length, char *host, socklen_t host_room,
      char *service, socklen_t service_room, int flags),
     (address, length, host, host_room, service, service_room, flags), FAULT_NOMEM)

/* Files */
CALL(int, -1, mkdir, (const char *path, mode_t mode), (path, mode), ENTRY)
CALL(int, -1, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), ENTRY)
CALL(char *, NULL, mkdtemp, (char *path), (path), ENTRY)
CALL(int, -1, unlink, (const char *path), (path), LOOKUP | FAULT_PERM)
CALL(int, -1, unlinkat, (int at, const char *path, int flags), (at, path, flags),
     LOOKUP | FAULT_PERM)
CALL(int, -1, rmdir, (const char *path), (path), LOOKUP | FAULT_PERM)
CALL(int, -1, ftruncate, (int fd, off_t length), (fd, length), FAULT_INTR | FAULT_IO)
CALL(int, -1, fsync, (int fd), (fd), FAULT_INTR | FAULT_IO | FAULT_NOSPC)
CALL(int, -1, getifaddrs, (struct ifaddrs * *list), (list), NEW_FD)
CALL(int, -1, link, (const char *from, const char *to), (from, to), ENTRY)
CALL(int, -1, rename, (const char *from, const char *to), (from, to), ENTRY)
CALL(int, -1, renameat, (int at, const char *from, int to_at, const char *to),
     (at, from, to_at, to), ENTRY)
CALL(int, -1, stat, (const char *path, struct stat *info), (path, info), LOOKUP)
CALL(int, -1, lstat, (const char *path, struct stat *info), (path, info), LOOKUP)
CALL(int, -1, fstat, (int fd, struct stat *info), (fd, info), LOOKUP)
CALL(int, -1, fstatat, (int at, const char *path, struct stat *info, int flags),
     (at, path, info, flags), LOOKUP)
CALL(int, -1, statvfs, (const char *path, struct statvfs *info), (path, info), LOOKUP | FAULT_INTR)
CALL(int, -1, fchmod, (int fd, mode_t mode), (fd, mode), FAULT_IO | FAULT_PERM)
CALL(int, -1, chmod, (const char *path, mode_t mode), (path, mode), FAULT_IO | FAULT_PERM)
CALL(int, -1, futimens, (int fd, const struct timespec times[2]), (fd, times), FAULT_IO)
CALL(int, -1, utimensat, (int folder, const char *path, const struct timespec times[2], int flags),
     (folder, path, times, flags), FAULT_IO | FAULT_PERM)
CALL(int, -1, symlink, (const char *target, const char *path), (target, path), ENTRY)
CALL(ssize_t, -1, pwrite, (int fd, const void *bytes, size_t length, off_t offset),
     (fd, bytes, length, offset), FAULT_INTR | FAULT_IO | FAULT_NOSPC)
CALL(int, -1, fchown, (int fd, uid_t user, gid_t group), (fd, user, group), FAULT_IO | FAULT_PERM)
CALL(int, GLOB_NOSPACE, glob,
     (const char *pattern, int flags, int (*error)(const char *, int), glob_t *found),
     (pattern, flags, error, found), FAULT_NOMEM)
/* What glibc allocates inside does not count: without memory its name service aborts, or reads at
 * NULL. */
struct passwd *getpwuid(uid_t uid)
{
    static __typeof__(&getpwuid) real;
    if (real == NULL)
        real = (__typeof__(&getpwuid))fault_real("getpwuid");
    if (fault_now("getpwuid", LOOKUP | NEW_FD))
        return NULL;
    bool was = fault_pause(true);
    struct passwd *user = real(uid);
    fault_pause(was);
    return user;
}
CALL(int, -1, access, (const char *path, int mode), (path, mode), LOOKUP)
CALL(int, -1, faccessat, (int at, const char *path, int mode, int flags), (at, path, mode, flags),
     LOOKUP)
CALL(ssize_t, -1, readlink, (const char *path, char *text, size_t room), (path, text, room), LOOKUP)
CALL(ssize_t, -1, readlinkat, (int folder, const char *path, char *text, size_t room),
     (folder, path, text, room), LOOKUP)
CALL(char *, NULL, realpath, (const char *path, char *resolved), (path, resolved), LOOKUP)
CALL(char *, NULL, getcwd, (char *text, size_t room), (text, room), FAULT_NOMEM)
CALL(int, -1, flock, (int fd, int operation), (fd, operation), FAULT_INTR | FAULT_NOMEM)
CALL(FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode), LOOKUP | NEW_FD)
CALL(DIR *, NULL, opendir, (const char *path), (path), LOOKUP | NEW_FD)
CALL(DIR *, NULL, fdopendir, (int fd), (fd), FAULT_NOMEM)
CALL(struct dirent *, NULL, readdir, (DIR * dir), (dir), FAULT_IO)
CALL(void *, MAP_FAILED, mmap,
     (void *at, size_t length, int protection, int flags, int fd, off_t offset),
     (at, length, protection, flags, fd, offset), FAULT_NOMEM)

/* The process itself, most of them in a child that is to become a worker */
CALL(int, -1, chdir, (const char *path), (path), LOOKUP)
CALL(int, -1, execve, (const char *path, char *const *argv, char *const *envp), (path, argv, envp),
     LOOKUP | FAULT_PERM)
CALL(pid_t, -1, setsid, (void), (), FAULT_PERM)
CALL(int, -1, setrlimit, (__rlimit_resource_t resource, const struct rlimit *limit),
     (resource, limit), FAULT_PERM)
CALL(int, -1, tcsetattr, (int fd, int when, const struct termios *modes), (fd, when, modes),
     FAULT_INTR | FAULT_IO)
CALL(ssize_t, -1, getrandom, (void *bytes, size_t length, unsigned flags), (bytes, length, flags),
     FAULT_PERM | ((flags & GRND_NONBLOCK) != 0 ? FAULT_AGAIN : 0))
CALL(int, -1, sched_getaffinity, (pid_t pid, size_t size, cpu_set_t *set), (pid, size, set),
     FAULT_PERM)
CALL(int, -1, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *set), (pid, size, set),
     FAULT_PERM)

/* A descriptor is closed even when that fails: what was written to it may be lost. */
int close(int fd)
{
    static __typeof__(&close) real;
    if (real == NULL)
        real = (__typeof__(&close))fault_real("close");
    unsigned kinds = fault_write_kinds(fd, 0) & (FAULT_NOSPC | FAULT_IO | FAULT_INTR);
    int result = real(fd);
    return result == 0 && fault_now("close", kinds) ? -1 : result;
}

/* Transfers, of which a part may be done */
#define TRANSFER(type, name, kinds_of, buffer, parameters, whole, part) \
    type name parameters                                                \
    {                                                                   \
        static __typeof__(&name) real;                                  \
        if (real == NULL)                                               \
            real = (__typeof__(&name))fault_real(#name);                \
        if (!fault_now(#name, kinds_of(fd, length)))                    \
            return real whole;                                          \
        return fault_is_short() ? real part : -1;                       \
    }

TRANSFER(ssize_t, read, fault_read_kinds, bytes, (int fd, void *bytes, size_t length),
         (fd, bytes, length), (fd, bytes, 1))
TRANSFER(ssize_t, pread, fault_read_kinds, bytes,
         (int fd, void *bytes, size_t length, off_t offset), (fd, bytes, length, offset),
         (fd, bytes, 1, offset))
TRANSFER(ssize_t, write, fault_write_kinds, bytes, (int fd, const void *bytes, size_t length),
         (fd, bytes, length), (fd, bytes, 1))
TRANSFER(ssize_t, recv, fault_read_kinds, bytes, (int fd, void *bytes, size_t length, int flags),
         (fd, bytes, length, flags), (fd, bytes, 1, flags))
TRANSFER(ssize_t, send, fault_write_kinds, bytes,
         (int fd, const void *bytes, size_t length, int flags), (fd, bytes, length, flags),
         (fd, bytes, 1, flags))

/* The kinds of the end that is written to, and what it is to wait for either. */
/* libevent's HTTP server uses these two. */
CALL(ssize_t, -1, readv, (int fd, const struct iovec *pieces, int count), (fd, pieces, count),
     fault_read_kinds(fd, 0))
CALL(ssize_t, -1, writev, (int fd, const struct iovec *pieces, int count), (fd, pieces, count),
     fault_write_kinds(fd, 0))

static unsigned splice_kinds(int to, size_t length, unsigned flags)
{
    unsigned kinds = fault_write_kinds(to, length);
    return kinds != 0 && (flags & SPLICE_F_NONBLOCK) != 0 ? kinds | FAULT_AGAIN : kinds;
}

ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags)
{
    __typeof__(&splice) real = fault_real("splice");
    if (!fault_now("splice", splice_kinds(to, length, flags)))
        return real(from, from_at, to, to_at, length, flags);
    return fault_is_short() ? real(from, from_at, to, to_at, 1, flags) : -1;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    __typeof__(&sendmsg) real = fault_real("sendmsg");
    return fault_now("sendmsg", fault_write_kinds(fd, 0)) ? -1 : real(fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    __typeof__(&recvmsg) real = fault_real("recvmsg");
    return fault_now("recvmsg", fault_read_kinds(fd, 0)) ? -1 : real(fd, message, flags);
}

/* Calls with an argument more or less */
static unsigned open_kinds(int flags)
{
    return LOOKUP | NEW_FD | FAULT_INTR | ((flags & O_CREAT) != 0 ? FAULT_NOSPC : 0);
}

static mode_t mode_of(int flags, va_list arguments)
{
    bool has_mode = (flags & (O_CREAT | __O_TMPFILE)) != 0;
    return has_mode ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = fault_real("open");
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return fault_now("open", open_kinds(flags)) ? -1 : real(path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    int (*real)(int, const char *, int, ...) = fault_real("openat");
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return fault_now("openat", open_kinds(flags)) ? -1 : real(at, path, flags, mode);
}

int fcntl(int fd, int command, ...)
{
    int (*real)(int, int, ...) = fault_real("fcntl");
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    return fault_now("fcntl", copies ? NEW_FD : 0) ? -1 : real(fd, command, argument);
}

/* Only what a child asks for that is to have a terminal. */
int ioctl(int fd, unsigned long request, ...)
{
    int (*real)(int, unsigned long, ...) = fault_real("ioctl");
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fault_now("ioctl", request == TIOCSCTTY ? FAULT_PERM : 0) ? -1
                                                                     : real(fd, request, argument);
}
