/* SPDX-License-Identifier: Apache-2.0 */
/* known_hosts: the host's name and port in the first line, the file behind it. What the index finds
 * for the host is what reading every line finds. */
#include "base/buf.h"
#include "fuzz.h"
#include "transport/ssh_module/base64.h"
#include "transport/ssh_module/known_files_test.h"

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

/* The last word of a line as a key. */
static struct byte_view key_in(struct byte_view line, unsigned char *room)
{
    size_t start = line.length;
    while (start > 0 && line.at[start - 1] != ' ' && line.at[start - 1] != '\t')
        start--;
    ssize_t length = base64_decode((const char *)line.at + start, line.length - start, room);
    return (struct byte_view){room, length > 0 ? (size_t)length : 0};
}

/* They answer alike to each key of the text. */
static void check_same(const struct known_hosts *a, const struct known_hosts *b, const char *text,
                       size_t length)
{
    struct byte_view left = {(const unsigned char *)text, length}, line;
    unsigned char *room AUTO_FREE = mem_alloc(length + 3);
    while (known_hosts_next_line(&left, &line)) {
        struct byte_view key = key_in(line, room);
        struct known_answer first = known_hosts_check(a, key), second = known_hosts_check(b, key);
        FUZZ_CHECK(first.verdict == second.verdict && first.line == second.line);
    }
    const char *type = "";
    for (size_t i = 0; type != NULL; i++) {
        const char *other = known_hosts_type(b, i);
        type = known_hosts_type(a, i);
        FUZZ_CHECK((type == NULL) == (other == NULL));
        FUZZ_CHECK(type == NULL || strcmp(type, other) == 0);
    }
}

/* The file comes in two parts, the second as if it had been appended, and is asked twice. */
static void check_index(const char *host, int port, const char *text, size_t length)
{
    struct known_hosts *all = known_hosts_create(host, port);
    struct name_hasher *hasher = name_hasher_create();
    struct known_index *index = known_index_create("f", hasher);
    read_all(all, text, length);
    for (size_t part = 1; part <= 2; part++) {
        AUTO_BUF struct buf some = BUF_INIT(length + 1);
        struct known_hosts *found = known_hosts_create(host, port);
        FUZZ_CHECK(buf_append(&some, text, length * part / 2) == 0);
        known_index_set(index, &some);
        known_index_find(index, found);
        if (part == 2)
            check_same(all, found, text, length);
        known_hosts_destroy(found);
    }
    known_index_destroy(index);
    name_hasher_destroy(hasher);
    known_hosts_destroy(all);
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    char *host AUTO_FREE = fuzz_line(&bytes), *text AUTO_FREE = fuzz_text(bytes.at, bytes.left);
    int port = size % 2 == 0 ? 22 : 2222;
    struct known_hosts *known = known_hosts_create(host, port);
    read_all(known, text, bytes.left);
    for (size_t i = 0; known_hosts_type(known, i) != NULL; i++)
        FUZZ_CHECK(known_hosts_type(known, i)[0] != '\0');
    struct byte_view key = {(const unsigned char *)text, bytes.left};
    struct known_answer answer = known_hosts_check(known, key);
    FUZZ_CHECK(answer.verdict <= KNOWN_UNDECIDABLE);
    known_hosts_destroy(known);
    check_index(host, port, text, bytes.left);
    if (host[0] != '\0' && strpbrk(host, " \t\r*?!,#@|[]\"\\") == NULL)
        check_own_line(host, port,
                       size % 3 == 0 ? (const unsigned char *)"01234567890123456789" : NULL);
    return 0;
}
