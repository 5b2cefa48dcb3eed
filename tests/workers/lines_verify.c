/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines_verify --ranks N --lines N [--stream S] [--plain] [--only R]: a reader, not a worker.
 * Reads what `hvdrun ... spew` printed. No line may be torn, mixed, lost, doubled or out of order.
 * Each label `[RANK]<stdout>:` must be that of the rank that wrote the line (--plain: no labels).
 * Prints "ok LINES" and exits with 0, or prints the first few faults and exits with 1.
 */
#include "spew_line.h"

static long next_number[4096];
static long faults, good;

static void fault(const char *what, const char *line, size_t length)
{
    if (++faults <= 5)
        fprintf(stderr, "lines_verify: %s: %.*s\n", what, length > 160 ? 160 : (int)length, line);
}

/* The rank in the label, -1 when there is none; `*skip` is the label's length. */
static long label_rank(const char *line, const char *name, size_t *skip)
{
    char *end;
    if (line[0] != '[')
        return -1;
    const long rank = strtol(line + 1, &end, 10);
    if (end == line + 1 || strncmp(end, "]<", 2) != 0)
        return -1;
    end += 2;
    if (strncmp(end, name, strlen(name)) != 0 || strncmp(end + strlen(name), ">:", 2) != 0)
        return -1;
    *skip = (size_t)(end + strlen(name) + 2 - line);
    return rank;
}

/* The number that follows `word` at `*at`, which moves behind it; -1 (and `*at` NULL) when there is
 * no such thing, also for all further calls. */
static long number_after(const char **at, const char *word)
{
    const size_t length = strlen(word);
    if (*at == NULL || strncmp(*at, word, length) != 0) {
        *at = NULL;
        return -1;
    }
    char *end;
    const long number = strtol(*at + length, &end, 10);
    *at = end == *at + length ? NULL : end;
    return *at != NULL ? number : -1;
}

static void check(const char *line, size_t length, bool plain, int stream)
{
    size_t skip = 0;
    const long label = plain ? 0 : label_rank(line, stream == 2 ? "stderr" : "stdout", &skip);
    if (label < 0) {
        fault("no label", line, length);
        return;
    }
    const char *text = line + skip;
    const size_t size = length - skip;
    const size_t tail = sizeof " c=01234567" - 1;
    const char *at = text;
    const long rank = number_after(&at, "spew r="), from = number_after(&at, " s=");
    const long number = number_after(&at, " n=");
    if (size < tail + 10 || number < 0) {
        fault("not a line of spew", line, length);
        return;
    }
    char want[16];
    snprintf(want, sizeof want, " c=%08x", crc32_add(0, text, size - tail));
    if (memcmp(text + size - tail, want, tail) != 0) {
        fault("torn or mixed", line, length);
        return;
    }
    if (rank < 0 || rank >= 4096 || from != stream || (!plain && rank != label)) {
        fault("label of another rank or stream", line, length);
        return;
    }
    if (number != next_number[rank]) {
        fault("lost, doubled or out of order", line, length);
        next_number[rank] = number;
    }
    next_number[rank]++;
    good++;
}

int main(int argc, char **argv)
{
    const long ranks = to_number(option(argc, argv, "--ranks", "1"));
    const long lines = to_number(option(argc, argv, "--lines", "1000"));
    const long only = to_number(option(argc, argv, "--only", "-1"));
    const int stream = (int)to_number(option(argc, argv, "--stream", "1"));
    char *line = NULL;
    size_t room = 0;
    for (;;) {
        ssize_t length = getline(&line, &room, stdin);
        if (length < 0)
            break;
        if (length > 0 && line[length - 1] == '\n')
            line[--length] = '\0';
        check(line, (size_t)length, flag(argc, argv, "--plain"), stream);
    }
    free(line);
    for (long rank = 0; rank < ranks; rank++) {
        if (next_number[rank] != lines && (only < 0 || only == rank)) {
            fprintf(stderr, "lines_verify: rank %ld: %ld lines of %ld\n", rank, next_number[rank],
                    lines);
            faults++;
        }
    }
    if (faults > 0) {
        fprintf(stderr, "lines_verify: %ld faults, %ld good lines\n", faults, good);
        return 1;
    }
    printf("ok %ld\n", good);
    return 0;
}
