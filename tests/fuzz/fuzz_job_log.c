/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a job, read from a file in memory: every line lies inside it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/log_reader.h"
#include "driver/tell/line_log.h"
#include "fuzz.h"

static void read_heads(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, size};
    while (bytes.left > 0) {
        struct log_head head, again;
        struct buf text AUTO_BUF = BUF_INIT(256);
        char *line AUTO_FREE = fuzz_line(&bytes);
        if (!log_head_parse(line, strlen(line), &head))
            continue;
        FUZZ_CHECK(head.wall_ms >= 0 && head.rank >= RECENT_LAUNCHER);
        FUZZ_CHECK(head.length <= LOG_PIECE_MAX);
        log_head_append(&head, &text);
        FUZZ_CHECK(log_head_parse(buf_text(&text), text.length - 1, &again));
        FUZZ_CHECK(again.wall_ms == head.wall_ms && again.rank == head.rank);
        FUZZ_CHECK(again.length == head.length && again.goes_on == head.goes_on);
    }
}

FUZZ_TARGET
{
    char root[] = "/tmp/hvd-fuzz-XXXXXX";
    struct log_line line;
    read_heads(data, size);
    FUZZ_CHECK(mkdtemp(root) != NULL);
    int folder AUTO_FD = fd_open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int fd AUTO_FD = openat(folder, "j-1.0.log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    FUZZ_CHECK(size == 0 || fd_write_all(fd, data, size) == 0);
    struct log_reader *reader = log_reader_create(folder, "j-1");
    for (size_t seen = 0; log_reader_next(reader, &line); seen += line.length) {
        FUZZ_CHECK(seen + line.length <= size);
        FUZZ_CHECK(memchr(line.text, '\n', line.length) == NULL);
    }
    log_reader_destroy(reader);
    unlinkat(folder, "j-1.0.log", 0);
    FUZZ_CHECK(rmdir(root) == 0);
    return 0;
}
