/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs of the user and of a vendor say about this host: a preemption probe, and nvidia-smi
 * (the first byte chooses which, and the status it ends with). They are real processes.
 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/departure.h"
#include "agent/room_test.h"
#include "node/gpus.h"
#include "place.h"

#define YEAR_MS 31536000000

static const char script[] = "#!/bin/sh\ncat \"$1\"; cat \"$2\" >&2; exit \"$3\"\n";

static void check_line(const char *line)
{
    FUZZ_CHECK(line[0] != '\0');
    for (; *line != '\0'; line++)
        FUZZ_CHECK((unsigned char)*line >= ' ' && *line != 0x7f);
}

static void emit(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    check_line(line);
}

static void noticed(void *context, bool has_deadline, int64_t within_ms, const char *why)
{
    int *notices = context;
    FUZZ_CHECK(within_ms >= 0 && within_ms <= YEAR_MS && (has_deadline || within_ms == 0));
    check_line(why);
    (*notices)++;
}

static void stop(void *context)
{
    loop_stop(context);
}

static void turn(struct loop *loop)
{
    loop_defer(loop, stop, loop);
    loop_run(loop);
}

/* Until the program has exited and all that it wrote (no more than the input) has been read. */
static void run_program(struct loop *loop, struct helpers *helpers, size_t size)
{
    struct reaper_exit exit = {.pid = -1};
    while (exit.pid < 0) {
        turn(loop);
        exit.pid = waitpid(-1, &exit.wait_status, 0);
        FUZZ_CHECK(exit.pid > 0 || errno == EINTR || errno == ECHILD); /* ECHILD: not started yet */
    }
    helpers_exited(helpers, &exit);
    for (size_t i = 0; i < 16 + size / 4096; i++)
        turn(loop);
}

static void ask_probe(struct loop *loop, const char *status, size_t size)
{
    const struct log log = {.level = LOG_DEBUG, .emit = emit};
    char *program AUTO_FREE = place_path("probe"), *out AUTO_FREE = place_path("out");
    char *errors AUTO_FREE = place_path("errors"), *end AUTO_FREE = mem_strdup(status);
    char *const words[] = {program, out, errors, end};
    int notices = 0;
    struct helpers *helpers = helpers_create();
    struct preempt *preempt =
        preempt_create(loop, helpers, words, 4, 1000000, &log, noticed, &notices);
    run_program(loop, helpers, size);
    FUZZ_CHECK(notices == (strcmp(status, "0") == 0));
    preempt_destroy(preempt);
    helpers_destroy(helpers);
}

static void counted(void *context, const struct program_result *result)
{
    *(int *)context = gpus_answered(result);
}

static void ask_vendor(struct loop *loop, const uint8_t *data, size_t size)
{
    char *program AUTO_FREE = place_path("nvidia-smi");
    int gpus = -1, lines = 0;
    /* The program has no argument but its own: it prints what stands behind it. */
    place_write("list", data, size);
    struct helpers *helpers = helpers_create();
    (void)gpus_ask(loop, helpers, program, 1000000, counted, &gpus);
    run_program(loop, helpers, size);
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    FUZZ_CHECK(gpus >= 0 && gpus <= lines + 1);
    helpers_destroy(helpers);
}

FUZZ_TARGET
{
    static bool made;
    struct fuzz_bytes bytes = {data, size};
    if (!made) {
        char *list AUTO_FREE = place_path("list");
        char *smi AUTO_FREE = mem_printf("#!/bin/sh\nexec cat '%s'\n", list);
        place_write("probe", script, sizeof(script) - 1);
        place_write("nvidia-smi", smi, strlen(smi));
        made = true;
    }
    struct loop *loop = loop_create(NULL);
    FUZZ_CHECK(loop != NULL);
    uint8_t choice = fuzz_u8(&bytes);
    if (choice % 4 == 3) {
        ask_vendor(loop, bytes.at, bytes.left);
    } else {
        char status[] = {(char)('0' + choice % 4), '\0'};
        size_t half = choice % 4 == 0 ? bytes.left : bytes.left / 2;
        place_write("out", bytes.at, half);
        place_write("errors", bytes.left > 0 ? bytes.at + half : NULL, bytes.left - half);
        ask_probe(loop, status, bytes.left);
    }
    loop_destroy(loop);
    return 0;
}
