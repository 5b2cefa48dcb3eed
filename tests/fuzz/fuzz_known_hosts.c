/* SPDX-License-Identifier: Apache-2.0 */
/* known_hosts: the host's name and port in the first line, the file behind it. */
#include <sys/mman.h>

#include "base/buf.h"
#include "base/fd.h"
#include "fuzz.h"
#include "transport/ssh_module/fields.h"
#include "transport/ssh_module/known_hosts.h"

static void read_all(struct known_hosts *known, const char *text, size_t length)
{
    struct byte_view left = {(const unsigned char *)text, length}, line;
    for (int number = 1; known_hosts_next_line(&left, &line); number++)
        known_hosts_read_line(known, "f", number, line);
}

/* A line that we would append says afterwards what it was made to say. */
static void check_own_line(const char *host, int port, const unsigned char *salt)
{
    static const unsigned char blob[] = "\0\0\0\013ssh-ed25519\0\0\0\004abcd";
    struct byte_view key = {blob, sizeof(blob) - 1};
    AUTO_BUF struct buf line = BUF_INIT((size_t)1 << 20);
    struct known_hosts *known = known_hosts_create(host, port);
    if (known_hosts_line(known, key, salt, &line) == 0) {
        read_all(known, buf_text(&line), line.length);
        FUZZ_CHECK(known_hosts_check(known, key).verdict == KNOWN_MATCH);
    }
    known_hosts_destroy(known);
}

/* A file of which nothing is on a disk. */
struct memory_file {
    int fd;
    char path[64];
    char *paths[2];
};

static void memory_file_open(struct memory_file *file)
{
    file->fd = memfd_create("known_hosts", MFD_CLOEXEC);
    FUZZ_CHECK(file->fd >= 0);
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
    file->paths[0] = file->path;
    file->paths[1] = NULL;
}

static void check_key(const struct known_hosts *found, const struct known_hosts *all,
                      struct byte_view key)
{
    struct known_answer a = known_hosts_check(found, key), b = known_hosts_check(all, key);
    FUZZ_CHECK(a.verdict == b.verdict && a.line == b.line);
}

/* The last word of each line, as a key. */
static void check_keys(const struct known_hosts *found, const struct known_hosts *all,
                       const char *text, size_t length)
{
    struct byte_view left = {(const unsigned char *)text, length}, line;
    while (known_hosts_next_line(&left, &line)) {
        size_t begin = line.length;
        while (begin > 0 && line.at[begin - 1] != ' ' && line.at[begin - 1] != '\t')
            begin--;
        unsigned char *key AUTO_FREE = mem_alloc(line.length - begin + 3);
        ssize_t got = base64_decode((const char *)line.at + begin, line.length - begin, key);
        if (got > 0)
            check_key(found, all, (struct byte_view){key, (size_t)got});
    }
}

/* A search by name finds what the lines say to one who reads all of them. */
static void check_found(struct ssh_known_files *files, struct memory_file *file, const char *host,
                        int port, const char *text, size_t length)
{
    struct known_hosts *found = known_hosts_create(host, port);
    struct known_hosts *all = known_hosts_create(host, port);
    struct error err = ERROR_INIT;
    FUZZ_CHECK(known_files_find(files, file->paths, found, &err) == 0);
    read_all(all, text, length);
    check_key(found, all, (struct byte_view){(const unsigned char *)text, length});
    check_keys(found, all, text, length);
    FUZZ_CHECK(found->types.count == all->types.count);
    for (size_t i = 0; i < all->types.count; i++)
        FUZZ_CHECK(strcmp(found->types.items[i], all->types.items[i]) == 0);
    known_hosts_destroy(found);
    known_hosts_destroy(all);
}

/* The file grows once, and other hosts have been looked up before. */
static void check_files(const char *host, int port, const char *text, size_t length)
{
    struct ssh_known_files *files = known_files_create();
    struct memory_file file;
    memory_file_open(&file);
    for (size_t done = 0, part = length / 2;; part = length) {
        FUZZ_CHECK(fd_write_all(file.fd, text + done, part - done) == 0);
        done = part;
        check_found(files, &file, "node1", 22, text, done);
        check_found(files, &file, host, port, text, done);
        check_found(files, &file, host, port == 22 ? 2222 : 22, text, done);
        if (done == length)
            break;
    }
    fd_close(&file.fd);
    known_files_destroy(files);
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    char *host AUTO_FREE = fuzz_line(&bytes), *text AUTO_FREE = fuzz_text(bytes.at, bytes.left);
    int port = size % 2 == 0 ? 22 : 2222;
    struct known_hosts *known = known_hosts_create(host, port);
    read_all(known, text, bytes.left);
    for (size_t i = 0; i < known->types.count; i++)
        FUZZ_CHECK(known->types.items[i][0] != '\0');
    struct byte_view key = {(const unsigned char *)text, bytes.left};
    struct known_answer answer = known_hosts_check(known, key);
    FUZZ_CHECK(answer.verdict <= KNOWN_UNDECIDABLE);
    known_hosts_destroy(known);
    check_files(host, port, text, bytes.left);
    if (host[0] != '\0' && strpbrk(host, " \t\r*?!,#@|[]\"\\") == NULL)
        check_own_line(host, port,
                       size % 3 == 0 ? (const unsigned char *)"01234567890123456789" : NULL);
    return 0;
}
