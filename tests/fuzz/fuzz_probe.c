/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs of the user and of a vendor say about this host: a preemption probe, and nvidia-smi
 * (the first byte chooses which, and the status it ends with). They are real processes.
 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/preempt.h"
#include "node/gpus_ask.h"
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

static struct reaper_exit wait_for(pid_t pid)
{
    struct reaper_exit exit = {.pid = pid};
    while (waitpid(pid, &exit.wait_status, 0) < 0)
        FUZZ_CHECK(errno == EINTR);
    return exit;
}

static void stop(void *context)
{
    loop_stop(context);
}

static void ask_probe(struct loop *loop, const char *status)
{
    const struct log log = {.level = LOG_DEBUG, .emit = emit};
    char *program AUTO_FREE = place_path("probe"), *out AUTO_FREE = place_path("out");
    char *errors AUTO_FREE = place_path("errors"), *end AUTO_FREE = mem_strdup(status);
    char *const words[] = {program, out, errors, end};
    int notices = 0;
    struct preempt *preempt = preempt_create(loop, words, 4, 1000000, &log, noticed, &notices);
    while (preempt_pid(preempt) == 0) {
        loop_defer(loop, stop, loop);
        loop_run(loop);
    }
    struct reaper_exit exit = wait_for(preempt_pid(preempt));
    FUZZ_CHECK(preempt_exited(preempt, &exit));
    FUZZ_CHECK(notices == (strcmp(status, "0") == 0));
    preempt_destroy(preempt);
}

static void counted(void *context, int gpus)
{
    *(int *)context = gpus;
}

static void ask_vendor(struct loop *loop, const uint8_t *data, size_t size)
{
    char *program AUTO_FREE = place_path("nvidia-smi");
    int gpus = -1, lines = 0;
    /* The program has no argument but its own: it prints what stands behind it. */
    place_write("list", data, size);
    struct gpus_ask *ask = gpus_ask_create(loop, program, 1000000, counted, &gpus, NULL);
    FUZZ_CHECK(ask != NULL);
    int status = 0;
    pid_t pid = waitpid(-1, &status, 0);
    struct reaper_exit exit = {.pid = pid, .wait_status = status};
    FUZZ_CHECK(gpus_ask_exited(ask, &exit));
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    FUZZ_CHECK(gpus >= 0 && gpus <= lines + 1);
    gpus_ask_destroy(ask);
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
        ask_probe(loop, status);
    }
    loop_destroy(loop);
    return 0;
}
