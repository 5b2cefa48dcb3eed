/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs fuzz targets without libFuzzer, so with any compiler. It runs every input of the corpus, and
 * then N inputs that it makes from these by random changes. The seed is fixed, so a run is the same
 * everywhere. If the process dies, the last input is in fuzz-NOUN.crash. To run it again, name that
 * file on the command line.
 *
 *   replay NOUN [--runs N] [--dict FILE] FILE-OR-FOLDER...
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "fuzz.h"
#include "fuzz_targets.h" /* made by fuzz.cmake */
#include "mutate.h"

#define HANG_S 120 /* for one input; the machine may be busy */

#define FUZZ_DECLARE(noun) int fuzz_##noun(const uint8_t *data, size_t size);
FUZZ_TARGET_LIST(FUZZ_DECLARE)
#undef FUZZ_DECLARE

struct target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
};

static const struct target targets[] = {
#define FUZZ_ENTRY(noun) {#noun, fuzz_##noun},
    FUZZ_TARGET_LIST(FUZZ_ENTRY)
#undef FUZZ_ENTRY
        {NULL, NULL}};

/* For what is called when the process dies; nothing else reads it. */
static struct {
    const struct mutate_input *input;
    const char *noun;
} now;

/* Weak, since only a build with sanitizers has it. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void keep_input(void)
{
    char path[128];
    if (now.input == NULL)
        return;
    snprintf(path, sizeof(path), "fuzz-%s.crash", now.noun);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0 && fd_write(fd, now.input->bytes, now.input->length) >= 0)
        dprintf(STDERR_FILENO, "replay: the input is in %s\n", path);
    fd_close(&fd);
}

static void died(int signal_number)
{
    dprintf(STDERR_FILENO, "replay: %s: signal %d\n", now.noun, signal_number);
    keep_input();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* Whole drivers read and print; what they say to stderr is of no interest unless they die. */
static int silence(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return -1;
    fd_close(&null);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(keep_input);
    else
        signal(SIGSEGV, died);
    signal(SIGABRT, died);
    signal(SIGALRM, died);
    return 0;
}

static void run(const struct target *target, const struct mutate_input *input)
{
    uint8_t *copy AUTO_FREE = mem_alloc(input->length + 1); /* a read past the end is found */
    memcpy(copy, input->bytes, input->length);
    uint8_t *exact AUTO_FREE = mem_resize(copy, input->length > 0 ? input->length : 1);
    copy = NULL;
    now.input = input;
    alarm(HANG_S);
    target->run(exact, input->length);
    alarm(0);
}

static int read_file(struct mutate_corpus *corpus, const char *path, struct error *err)
{
    AUTO_BUF struct buf bytes = BUF_INIT(MUTATE_SIZE_MAX);
    if (fd_read_file(path, &bytes, err) < 0)
        return -1;
    mutate_add(corpus, buf_text(&bytes), bytes.length);
    return 0;
}

static int in_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_place(struct mutate_corpus *corpus, const char *path, struct error *err)
{
    struct stat info;
    struct dirent **entries = NULL;
    if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
        return read_file(corpus, path, err);
    int count = scandir(path, &entries, NULL, in_order);
    if (count < 0)
        return error_errno(err, errno, "cannot read %s", path);
    int result = 0;
    for (int i = 0; i < count; i++) {
        char *file AUTO_FREE = mem_printf("%s/%s", path, entries[i]->d_name);
        if (result == 0 && entries[i]->d_name[0] != '.')
            result = read_file(corpus, file, err);
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int read_arguments(int argc, char **argv, struct mutate_corpus *corpus, int64_t *runs,
                          struct error *err)
{
    int result = 0;
    for (int i = 2; i < argc && result == 0; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--runs") == 0 && has_value)
            result = parse_int(argv[++i], 0, INT64_MAX, runs, err);
        else if (strcmp(argv[i], "--dict") == 0 && has_value)
            result = mutate_read_words(corpus, argv[++i], err);
        else
            result = read_place(corpus, argv[i], err);
    }
    return result;
}

static const struct target *find(const char *noun)
{
    const struct target *target = targets;
    while (target->name != NULL && strcmp(target->name, noun) != 0)
        target++;
    return target->name == NULL ? NULL : target;
}

int main(int argc, char **argv)
{
    struct mutate_corpus corpus = {.state = MUTATE_SEED};
    struct error err = ERROR_INIT;
    int64_t runs = 0;
    const struct target *target = argc < 2 ? NULL : find(argv[1]);
    if (target == NULL) {
        fprintf(stderr, "usage: replay NOUN [--runs N] [--dict FILE] FILE-OR-FOLDER...\n");
        return 2;
    }
    now.noun = target->name;
    if (read_arguments(argc, argv, &corpus, &runs, &err) < 0 || silence() < 0) {
        fprintf(stderr, "replay: %s\n", err.text);
        return 2;
    }
    dprintf(STDERR_FILENO, "replay: %s: %zu files, %lld changes of them\n", target->name,
            corpus.count, (long long)runs);
    for (size_t i = 0; i < corpus.count; i++)
        run(target, &corpus.inputs[i]);
    struct mutate_input made = {.bytes = mem_alloc(MUTATE_SIZE_MAX)};
    for (int64_t i = 0; i < runs; i++) {
        mutate_next(&corpus, &made);
        run(target, &made);
    }
    now.input = NULL;
    free(made.bytes);
    mutate_destroy(&corpus);
    return corpus.count == 0 ? 1 : 0;
}
