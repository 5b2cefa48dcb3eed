/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "transport/ssh_module/base64.h"
#include "transport/ssh_module/openssh_key.h"

#define FILE_MAX 65536
#define PUBLIC_MAX 16384

/* OpenSSL asks for a passphrase; there is none. */
static int pem_passphrase(char *out, int room, int writing, void *context)
{
    bool *asked = context;

    (void)out, (void)room, (void)writing;
    *asked = true;
    return -1;
}

static void set_encrypted(struct key_file *file)
{
    file->kind = KEY_FILE_LOCKED;
    error_set(&file->reason, "it is encrypted: load it into your ssh-agent with ssh-add");
}

static void parse_pem(struct key_file *file, const char *path, const char *text, size_t length)
{
    bool asked = false;
    BIO *bio = BIO_new_mem_buf(text, (int)length);
    EVP_PKEY *private = bio ? PEM_read_bio_PrivateKey(bio, NULL, pem_passphrase, &asked) : NULL;

    BIO_free(bio);
    ERR_clear_error();
    if (private) {
        file->key = key_create_take(private, path, &file->reason);
        file->kind = file->key ? KEY_FILE_USABLE : KEY_FILE_BAD;
        if (file->key)
            (void)buf_append(&file->public, buf_text(&file->key->blob), file->key->blob.length);
    } else if (asked) {
        set_encrypted(file);
    } else {
        file->kind = KEY_FILE_BAD;
        error_set(&file->reason, "it is not a private key that OpenSSH or OpenSSL can read");
    }
}

void key_file_parse(struct key_file *file, const char *path, const char *text, size_t length)
{
    memset(file, 0, sizeof *file);
    buf_init(&file->public, PUBLIC_MAX);
    switch (openssh_key_parse(path, text, length, &file->key, &file->public, &file->reason)) {
    case OPENSSH_KEY_USABLE: file->kind = KEY_FILE_USABLE; break;
    case OPENSSH_KEY_ENCRYPTED: set_encrypted(file); break;
    case OPENSSH_KEY_FOREIGN: file->kind = KEY_FILE_NEEDS_SSH; break;
    case OPENSSH_KEY_BAD: file->kind = KEY_FILE_BAD; break;
    case OPENSSH_KEY_NONE: parse_pem(file, path, text, length); break;
    }
}

void key_file_destroy(struct key_file *file)
{
    key_destroy(file->key);
    buf_destroy(&file->public);
}

/* A line "TYPE BASE64 COMMENT". */
static bool parse_public(struct buf *out, const char *text, size_t length)
{
    const char *end = memchr(text, '\n', length), *digits, *stop;
    unsigned char bytes[PUBLIC_MAX];
    struct byte_view key = {.at = bytes}, type = {.at = (const unsigned char *)text};
    ssize_t decoded;

    if (!end)
        end = text + length;
    digits = memchr(text, ' ', (size_t)(end - text));
    if (!digits)
        return false;
    type.length = (size_t)(digits - text);
    digits++;
    stop = memchr(digits, ' ', (size_t)(end - digits));
    if (!stop)
        stop = end;
    if (stop - digits > PUBLIC_MAX)
        return false;
    decoded = base64_decode(digits, (size_t)(stop - digits), bytes);
    key.length = decoded > 0 ? (size_t)decoded : 0;
    return type.length > 0 && view_equal(key_blob_type(key), type) &&
           buf_append(out, key.at, key.length) == 0;
}

static void read_neighbours(struct key_file *file, const char *path)
{
    AUTO_FREE char *public = mem_printf("%s.pub", path);
    AUTO_FREE char *certificate = mem_printf("%s-cert.pub", path);
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct stat status;

    file->certificate = access(certificate, R_OK) == 0;
    if (file->public.length == 0 && stat(public, &status) == 0 && S_ISREG(status.st_mode) &&
        fd_read_file(public, &text, NULL) == 0)
        (void)parse_public(&file->public, buf_text(&text), text.length);
}

/* Fills `text` (FILE_MAX bytes); -1: kind and reason say why not. */
static ssize_t read_bytes(struct key_file *file, const char *path, char *text)
{
    AUTO_FD int fd = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    struct stat status;
    size_t length = 0;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        file->kind = KEY_FILE_MISSING;
        return -1;
    }
    file->kind = KEY_FILE_BAD;
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_errno(&file->reason, errno, "it cannot be read");
    if (!S_ISREG(status.st_mode) || status.st_size > FILE_MAX)
        return error_set(&file->reason, "it is not a private key");
    while (length < FILE_MAX) {
        ssize_t got = fd_read(fd, text + length, FILE_MAX - length);

        if (got < 0)
            return error_errno(&file->reason, errno, "it cannot be read");
        if (got == 0)
            break;
        length += (size_t)got;
    }
    if (!parse_public(&file->public, text, length) && status.st_uid == getuid() &&
        (status.st_mode & 077) != 0)
        return error_set(
            &file->reason,
            "other users can read it, so OpenSSH and hvdrun do not use it: run chmod 600 on it");
    return (ssize_t)length;
}

void key_file_read(struct key_file *file, const char *path)
{
    char *text = mem_alloc(FILE_MAX);
    ssize_t length;

    memset(file, 0, sizeof *file);
    buf_init(&file->public, PUBLIC_MAX);
    length = read_bytes(file, path, text);
    if (length >= 0 && file->public.length > 0) {
        /* An identity may be named by its public half alone: the agent has the other one. */
        file->kind = KEY_FILE_LOCKED;
        error_set(&file->reason, "it is a public key, and the agent does not have the private one");
    } else if (length >= 0) {
        buf_destroy(&file->public);
        key_file_parse(file, path, text, (size_t)length);
    }
    OPENSSL_cleanse(text, FILE_MAX);
    mem_free_at(&text);
    read_neighbours(file, path);
}
