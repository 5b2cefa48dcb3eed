/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spew [--rank R|all] [--lines N] [--length L] [--chunk C] [--stream 1|2|both] [--no-newline]
 *      [--for-ever] [--end-by-signal S] [--started PATH]
 *
 * Writes N numbered, checksummed lines (spew_line.h) in writes of C bytes, which do not end where
 * lines end. With --no-newline, it leaves out the very last newline. With --started, it makes a
 * file before it writes.
 */
#include <fcntl.h>

#include "spew_line.h"

struct out {
    int fd;
    char *bytes;
    size_t used, chunk;
};

static void out_add(struct out *out, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t part = out->chunk - out->used;
        if (part > length)
            part = length;
        memcpy(out->bytes + out->used, bytes, part);
        out->used += part;
        bytes += part;
        length -= part;
        if (out->used == out->chunk) {
            write_all(out->fd, out->bytes, out->used);
            out->used = 0;
        }
    }
}

int main(int argc, char **argv)
{
    if (!is_me(argc, argv))
        return 0;
    const char *stream = option(argc, argv, "--stream", "1");
    const bool both = strcmp(stream, "both") == 0;
    const long lines = to_number(option(argc, argv, "--lines", "1000"));
    const bool for_ever = flag(argc, argv, "--for-ever");
    size_t length = (size_t)to_number(option(argc, argv, "--length", "100"));
    if (length < SPEW_SHORTEST)
        length = SPEW_SHORTEST;
    struct out out[2];
    for (int i = 0; i < 2; i++) {
        out[i].fd = both ? i + 1 : (int)to_number(stream);
        out[i].chunk = (size_t)to_number(option(argc, argv, "--chunk", "65521"));
        out[i].bytes = malloc(out[i].chunk);
        out[i].used = 0;
    }
    const char *started = option(argc, argv, "--started", NULL);
    if (started != NULL)
        close(open(started, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    char *line = malloc(length);
    for (long n = 0; n < lines || for_ever; n++) {
        const bool last = n + 1 == lines && !for_ever && flag(argc, argv, "--no-newline");
        for (int i = 0; i < (both ? 2 : 1); i++) {
            spew_line(line, length, my_rank(), out[i].fd, n);
            out_add(&out[i], line, last ? length - 1 : length);
        }
    }
    for (int i = 0; i < (both ? 2 : 1); i++)
        write_all(out[i].fd, out[i].bytes, out[i].used);
    const long signal_number = to_number(option(argc, argv, "--end-by-signal", "0"));
    if (signal_number != 0)
        raise((int)signal_number);
    return 0;
}
