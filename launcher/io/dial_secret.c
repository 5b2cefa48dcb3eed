/* SPDX-License-Identifier: Apache-2.0 */
#include "io/dial_secret.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "base/status.h"

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
