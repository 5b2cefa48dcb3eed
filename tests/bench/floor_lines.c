/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and checks lines of 100 bytes as cheaply as possible, so that a benchmark measures only
 * the programs between writer and reader:
 *   floor_lines write --lines N [--rank R]     default: the rank that the launcher gives
 *   floor_lines verify --ranks N --lines N [--label TEMPLATE]   ("%d" in it: the rank)
 *   floor_lines drain                          only counts
 *
 * A line is "line r=RANK n=NUMBER " and letters that depend on both. So the reader knows every byte
 * of every line. The commands verify and drain print one line of JSON: how many bytes arrived, and
 * how many were wrong. A byte is right if it is in a whole line that has the right label and comes
 * in the order of its rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LENGTH = 100, /* with the newline */
    HEAD = 25,    /* "line r=0001 n=0000000001 " */
    RANK_AT = 7,
    RANK_DIGITS = 4,
    NUMBER_AT = 14,
    NUMBER_DIGITS = 10,
    LETTERS = 26,
    RANKS_MAX = 1024,
    BLOCK_LINES = LETTERS * 25,
    ROOM = 256 * 1024,
    LABEL_MAX = 64
};

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 2; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return otherwise;
}

static long number_option(int argc, char **argv, const char *name, const char *otherwise)
{
    return strtol(option(argc, argv, name, otherwise), NULL, 10);
}

static void put_number(char *at, int digits, long number)
{
    for (int i = digits - 1; i >= 0; i--, number /= 10)
        at[i] = (char)('0' + number % 10);
}

/* -1: it has other characters than digits. */
static long get_number(const char *at, int digits)
{
    long number = 0;
    for (int i = 0; i < digits; i++) {
        if (at[i] < '0' || at[i] > '9')
            return -1;
        number = number * 10 + at[i] - '0';
    }
    return number;
}

static void make_line(char *line, long rank, long number)
{
    memcpy(line, "line r=0000 n=0000000000 ", HEAD);
    put_number(line + RANK_AT, RANK_DIGITS, rank);
    put_number(line + NUMBER_AT, NUMBER_DIGITS, number);
    for (int i = HEAD; i < LENGTH - 1; i++)
        line[i] = (char)('a' + (i + rank + number) % LETTERS);
    line[LENGTH - 1] = '\n';
}

static int write_all(const char *bytes, size_t length)
{
    while (length > 0) {
        const ssize_t put = write(1, bytes, length);
        if (put <= 0)
            return -1;
        bytes += put;
        length -= (size_t)put;
    }
    return 0;
}

static long launched_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]) != NULL)
            return strtol(getenv(names[i]), NULL, 10);
    return 0;
}

/* The letters at one place in the block are always the same, so only the numbers change. */
static int run_write(long rank, long lines)
{
    static char block[BLOCK_LINES * LENGTH];
    for (long i = 0; i < BLOCK_LINES; i++)
        make_line(block + i * LENGTH, rank, i);
    for (long done = 0; done < lines; done += BLOCK_LINES) {
        const long count = lines - done < BLOCK_LINES ? lines - done : BLOCK_LINES;
        for (long i = 0; i < count; i++)
            put_number(block + i * LENGTH + NUMBER_AT, NUMBER_DIGITS, done + i);
        if (write_all(block, (size_t)count * LENGTH) < 0)
            return 1;
    }
    return 0;
}

struct verdict {
    const char *template;
    long ranks, lines;
    long bytes, seen, bad, disorder;
    long next[RANKS_MAX];
    char label[RANKS_MAX][LABEL_MAX];
    size_t label_length[RANKS_MAX];
    char letters[LETTERS][LENGTH];
};

static void prepare(struct verdict *verdict)
{
    const char *number = strstr(verdict->template, "%d");
    const int before =
        (int)(number != NULL ? (size_t)(number - verdict->template) : strlen(verdict->template));
    for (long rank = 0; rank < verdict->ranks; rank++) {
        char *label = verdict->label[rank];
        if (number != NULL)
            snprintf(label, LABEL_MAX, "%.*s%ld%s", before, verdict->template, rank, number + 2);
        else
            snprintf(label, LABEL_MAX, "%s", verdict->template);
        verdict->label_length[rank] = strlen(label);
    }
    for (int i = 0; i < LETTERS; i++)
        make_line(verdict->letters[i], 0, i);
}

/* -1: this is not a whole line with the label of its rank. */
static long good_line(const struct verdict *verdict, const char *line, size_t length, long *number)
{
    if (length < LENGTH)
        return -1;
    const char *text = line + length - LENGTH;
    const long rank = get_number(text + RANK_AT, RANK_DIGITS);
    *number = get_number(text + NUMBER_AT, NUMBER_DIGITS);
    if (rank < 0 || rank >= verdict->ranks || *number < 0)
        return -1;
    const char *letters = verdict->letters[(rank + *number) % LETTERS];
    if (memcmp(text, letters, RANK_AT) != 0 ||
        memcmp(text + RANK_AT + RANK_DIGITS, " n=", 3) != 0 ||
        memcmp(text + HEAD - 1, letters + HEAD - 1, LENGTH - HEAD + 1) != 0)
        return -1;
    if (length - LENGTH != verdict->label_length[rank] ||
        memcmp(line, verdict->label[rank], length - LENGTH) != 0)
        return -1;
    return rank;
}

static void check(struct verdict *verdict, const char *line, size_t length)
{
    long number = 0;
    const long rank = good_line(verdict, line, length, &number);
    if (rank < 0) {
        verdict->bad++;
        return;
    }
    verdict->disorder += number < verdict->next[rank];
    verdict->next[rank] = number + 1;
    verdict->seen++;
}

/* Takes the whole lines, and moves the rest to the front. */
static size_t check_lines(struct verdict *verdict, char *bytes, size_t length)
{
    char *at = bytes, *end = bytes + length;
    for (;;) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL)
            break;
        check(verdict, at, (size_t)(newline + 1 - at));
        at = newline + 1;
    }
    if (at == bytes && length == ROOM) { /* no valid line is so long */
        verdict->bad++;
        return 0;
    }
    memmove(bytes, at, (size_t)(end - at));
    return (size_t)(end - at);
}

static int run_read(struct verdict *verdict, int checks)
{
    static char bytes[ROOM];
    size_t held = 0;
    for (;;) {
        const ssize_t got = read(0, bytes + held, ROOM - held);
        if (got <= 0)
            break;
        verdict->bytes += got;
        if (checks)
            held = check_lines(verdict, bytes, held + (size_t)got);
    }
    verdict->bad += held > 0;
    const long missing = checks ? verdict->lines * verdict->ranks - verdict->seen : 0;
    printf("{\"bytes\": %ld, \"good\": %ld, \"bad\": %ld, \"missing\": %ld, \"disorder\": %ld}\n",
           verdict->bytes, verdict->seen, verdict->bad, missing, verdict->disorder);
    return verdict->bad > 0 || missing != 0 || verdict->disorder > 0;
}

int main(int argc, char **argv)
{
    static struct verdict verdict;
    const char *what = argc > 1 ? argv[1] : "";
    verdict.lines = number_option(argc, argv, "--lines", "0");
    verdict.ranks = number_option(argc, argv, "--ranks", "1");
    verdict.template = option(argc, argv, "--label", "");
    if (strcmp(what, "write") == 0) {
        const char *rank = option(argc, argv, "--rank", NULL);
        return run_write(rank != NULL ? strtol(rank, NULL, 10) : launched_rank(), verdict.lines);
    }
    if (verdict.ranks < 1 || verdict.ranks > RANKS_MAX)
        return 2;
    if (strcmp(what, "verify") == 0) {
        prepare(&verdict);
        return run_read(&verdict, 1);
    }
    return strcmp(what, "drain") == 0 ? run_read(&verdict, 0) : 2;
}
