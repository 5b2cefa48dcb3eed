/* SPDX-License-Identifier: Apache-2.0 */
/* known_hosts: the host's name and port in the first line, the file behind it. */
#include "base/buf.h"
#include "fuzz.h"
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
    if (host[0] != '\0' && strpbrk(host, " \t\r*?!,#@|[]\"\\") == NULL)
        check_own_line(host, port,
                       size % 3 == 0 ? (const unsigned char *)"01234567890123456789" : NULL);
    return 0;
}
