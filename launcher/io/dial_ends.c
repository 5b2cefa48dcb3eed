/* SPDX-License-Identifier: Apache-2.0 */
#include "io/dial_ends.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/text.h"

#define SALT "hvdrun dial 1"

_Static_assert(TLS_KEY_SIZE == HMAC_SIZE, "one block of HKDF is the key");

void dial_secret_derive(const void *secret, size_t length, const char *id,
                        uint8_t key[TLS_KEY_SIZE])
{
    uint8_t extracted[HMAC_SIZE];
    uint8_t info[DIAL_ID_MAX + 1];
    size_t info_length = strnlen(id, DIAL_ID_MAX);
    memcpy(info, id, info_length);
    info[info_length] = 1; /* the number of the block */
    hmac_sha256(SALT, sizeof(SALT) - 1, secret, length, extracted);
    hmac_sha256(extracted, sizeof(extracted), info, info_length + 1, key);
    explicit_bzero(extracted, sizeof(extracted));
}

static bool is_word(const char *id)
{
    size_t length = strnlen(id, DIAL_ID_MAX + 1);
    for (size_t i = 0; i < length; i++) {
        if (id[i] <= ' ' || id[i] > '~')
            return false;
    }
    return length > 0 && length <= DIAL_ID_MAX;
}

/* How many bytes it has, at most `room`. -1: errno. */
static ssize_t read_file(const char *path, uint8_t *bytes, size_t room)
{
    AUTO_FD int fd = fd_open_regular(path);
    size_t length = 0;
    while (fd >= 0 && length < room) {
        ssize_t got = fd_read(fd, bytes + length, room - length);
        if (got < 0)
            return -1;
        if (got == 0)
            return (ssize_t)length;
        length += (size_t)got;
    }
    return fd < 0 ? -1 : (ssize_t)length;
}

static size_t without_end(const uint8_t *bytes, size_t length)
{
    while (length > 0 && strchr(" \t\r\n", bytes[length - 1]) != NULL && bytes[length - 1] != 0)
        length--;
    return length;
}

static int make_key(const char *path, const char *id, uint8_t key[TLS_KEY_SIZE], struct error *err)
{
    uint8_t bytes[DIAL_SECRET_MAX + 1];
    if (!is_word(id))
        return error_set(err,
                         "the id of the run (--dial-id) must be one word of at most %d printable "
                         "ASCII characters",
                         DIAL_ID_MAX);
    if (path == NULL) { /* of one user's copies */
        int length = snprintf((char *)bytes, sizeof(bytes), "%lu", (unsigned long)geteuid());
        dial_secret_derive(bytes, (size_t)length, id, key);
        return 0;
    }
    ssize_t got = read_file(path, bytes, sizeof(bytes));
    if (got < 0)
        return error_errno(err, errno, "cannot read the secret from %s, which must be a file",
                           path);
    int result = 0;
    size_t length = without_end(bytes, (size_t)got);
    if (got > DIAL_SECRET_MAX || length < DIAL_SECRET_MIN)
        result = error_set(err,
                           "the secret in %s has %s than %d bytes; create a new one, such as with "
                           "openssl rand -hex 32",
                           path, got > DIAL_SECRET_MAX ? "more" : "less",
                           got > DIAL_SECRET_MAX ? DIAL_SECRET_MAX : DIAL_SECRET_MIN);
    else
        dial_secret_derive(bytes, length, id, key);
    explicit_bzero(bytes, sizeof(bytes));
    return result;
}

bool dial_secret_is_open(const char *path)
{
    struct stat info;
    return path != NULL && stat(path, &info) == 0 && (info.st_mode & S_IWOTH) != 0;
}

int dial_secret_key(const char *path, const char *id, uint8_t key[TLS_KEY_SIZE], struct error *err)
{
    int result = make_key(path, id, key, err);
    if (result < 0)
        err->status = STATUS_USAGE;
    return result;
}

#define TEXT_MAX 4096 /* of the child */
#define FAILED '!'    /* how its text begins if the rest is an error */

/* Where the port begins; NULL: there is none. Of an IPv6 address, brackets are not in the host. */
static const char *split(const char *server, const char **host, size_t *length)
{
    const char *colon = strrchr(server, ':');
    if (colon == NULL)
        return NULL;
    bool bracketed = server[0] == '[' && colon > server + 1 && colon[-1] == ']';
    *host = server + bracketed;
    *length = (size_t)(colon - server) - 2 * (size_t)bracketed;
    return bracketed || memchr(server, ':', *length) == NULL ? colon + 1 : NULL;
}

bool dial_lookup_is_server(const char *server)
{
    const char *host;
    size_t length;
    int64_t number;
    const char *port = split(server, &host, &length);
    return port != NULL && name_is_safe(host, length) &&
           parse_int(port, 1, UINT16_MAX, &number, NULL) == 0;
}

/* The child */

static void put_address(struct buf *text, const struct addrinfo *address)
{
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    bool ipv6 = address->ai_family == AF_INET6;
    buf_printf(text, "%s%s%s:%s\n", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
}

static void look_up(const char *server, struct buf *text)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *host = server;
    size_t length = 0;
    const char *port = split(server, &host, &length);
    char *name AUTO_FREE = mem_strndup(host, length);
    int result = getaddrinfo(name, port, &hints, &found);
    if (result != 0)
        buf_printf(text, "%c%s", FAILED,
                   result == EAI_SYSTEM ? strerror(errno) : gai_strerror(result));
    for (const struct addrinfo *one = found; one != NULL; one = one->ai_next)
        put_address(text, one);
    if (found != NULL)
        freeaddrinfo(found);
}

static void child(const char *server, int fd, pid_t parent)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        look_up(server, &text);
    _exit(fd_write_all(fd, buf_text(&text), text.length) < 0);
}

/* The parent */

/* -1: its time is over. */
static int read_all(int fd, int64_t limit_ms, struct buf *text)
{
    const int64_t until = clock_mono_ms() + limit_ms;
    for (;;) {
        char bytes[512];
        struct pollfd one = {.fd = fd, .events = POLLIN};
        int64_t left = until - clock_mono_ms();
        if (left <= 0)
            return -1;
        if (poll(&one, 1, (int)left) <= 0)
            continue;
        ssize_t got = fd_read(fd, bytes, sizeof(bytes));
        if (got <= 0)
            return 0;
        buf_append(text, bytes, (size_t)got);
    }
}

int dial_lookup(const char *server, int64_t limit_ms, struct strv *out, struct error *err)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    AUTO_FD_PAIR int ends[2] = {-1, -1};
    pid_t self = getpid();
    if (fd_pipe(ends) < 0)
        return error_errno(err, errno, "cannot create a pipe");
    pid_t pid = fork();
    if (pid < 0)
        return error_errno(err, errno, "cannot start a process");
    if (pid == 0)
        child(server, ends[1], self);
    fd_close(&ends[1]);
    bool is_late = read_all(ends[0], limit_ms, &text) < 0;
    kill(pid, SIGKILL); /* it has nothing more to say */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    const char *said = buf_text(&text), *end = said + text.length, *line;
    size_t length;
    if (is_late)
        return error_set(err, "cannot look up %s: no resolver answers", server);
    if (said[0] == FAILED || said[0] == '\0')
        return error_set(err, "cannot look up %s: %s", server,
                         said[0] == FAILED ? said + 1 : "the look-up failed");
    while (out->count < DIAL_LOOKUP_MAX && text_next_line(&said, end, &line, &length))
        strv_add_n(out, line, length);
    return 0;
}
