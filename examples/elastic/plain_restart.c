/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This program survives the loss of workers and hosts without any library for distributed work.
 * When one is lost, hvdrun terminates the other workers and starts all again on the hosts that
 * remain.
 *
 *   hvdrun -np 2 --min-np 1 --max-np 8 --host-discovery-script examples/elastic/discover.sh
 *       build/examples/elastic/plain_restart --folder /shared/items
 *
 * The program computes pi as a sum, which it divides into items. Rank r of n does the items r,
 * r + n, r + 2n and so on. Each item has its own file for its state, in a folder that all hosts
 * share. So any rank can continue any item, and the number of ranks may change. The program writes
 * the state from time to time, at SIGTERM, and when it learns that its host will go away. It learns
 * this from the file that HVDRUN_DEADLINE_FILE names, which appears then and has the time.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 24, PARTS = 200, TERMS = 20000, PATH_SIZE = 4096 };

/* One item, with the sum of its first `done` parts. */
struct item {
    int number, done;
    double sum;
};

struct job {
    const char *folder;
    int rank, size;
    int every;    /* write the state after so many parts */
    int pause_ms; /* a wait after each part, to give you time to watch */
    bool warned;  /* it has seen the deadline */
};

static volatile sig_atomic_t told_to_end;

static void on_term(int number)
{
    told_to_end = number;
}

static int number_from(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? (int)strtol(text, NULL, 10) : otherwise;
}

static void item_path(const struct job *job, int number, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/item-%d", job->folder, number);
}

/* An item without a file has no parts yet. %a keeps every bit of the sum. */
static struct item item_load(const struct job *job, int number)
{
    struct item item = {.number = number};
    char path[PATH_SIZE], line[128] = "";
    item_path(job, number, path);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return item;
    if (fgets(line, sizeof(line), file) != NULL) {
        char *rest = NULL;
        item.done = (int)strtol(line, &rest, 10);
        item.sum = strtod(rest, NULL);
    }
    fclose(file);
    return item;
}

/* If the program is killed during this, the old file stays intact. */
static int item_save(const struct job *job, const struct item *item)
{
    char path[PATH_SIZE], fresh[PATH_SIZE + 32];
    item_path(job, item->number, path);
    snprintf(fresh, sizeof(fresh), "%s.%d", path, job->rank);
    FILE *file = fopen(fresh, "we");
    bool written = file != NULL && fprintf(file, "%d %a\n", item->done, item->sum) > 0;
    if (file != NULL && fclose(file) != 0)
        written = false;
    if (!written || rename(fresh, path) != 0) {
        fprintf(stderr, "plain_restart: cannot write %s: %s\n", path, strerror(errno));
        return -1;
    }
    return 0;
}

static void do_part(struct item *item)
{
    const double all = (double)ITEMS * PARTS * TERMS;
    const double first = ((double)item->number * PARTS + item->done) * TERMS;
    for (int i = 0; i < TERMS; i++) {
        const double x = (first + i + 0.5) / all;
        item->sum += 4 / (1 + x * x) / all;
    }
    item->done++;
}

/* True, and one line of output, the first time that the deadline file exists. */
static bool is_leaving(struct job *job)
{
    const char *path = getenv("HVDRUN_DEADLINE_FILE");
    char line[256] = "";
    if (job->warned || path == NULL)
        return false;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fgets(line, sizeof(line), file) == NULL)
        line[0] = '\0';
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    printf("rank %d: this host will go away: %s\n", job->rank, line);
    job->warned = true;
    return true;
}

/* The state is safe, so now the signal may end the program. */
static void end_by_signal(void)
{
    signal(told_to_end, SIG_DFL);
    raise(told_to_end);
}

static int do_item(struct job *job, int number)
{
    struct item item = item_load(job, number);
    if (item.done > 0 && item.done < PARTS)
        printf("rank %d: continues item %d at part %d\n", job->rank, number, item.done);
    while (item.done < PARTS) {
        do_part(&item);
        poll(NULL, 0, job->pause_ms);
        const bool due = item.done % job->every == 0 || item.done == PARTS;
        if ((due || told_to_end != 0 || is_leaving(job)) && item_save(job, &item) < 0)
            return -1;
        if (told_to_end != 0)
            end_by_signal();
    }
    return 0;
}

/* Rank 0 waits for all items and adds them up in their order, so that the sum always has the same
 * bits. */
static void add_up(const struct job *job)
{
    double sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        struct item item = item_load(job, i);
        while (item.done < PARTS) {
            if (told_to_end != 0)
                end_by_signal();
            poll(NULL, 0, 50);
            item = item_load(job, i);
        }
        sum += item.sum;
    }
    printf("%d items: pi is %.12f\n", ITEMS, sum);
}

int main(int argc, char **argv)
{
    struct job job = {
        .rank = number_from("HVDRUN_RANK", 0), .size = number_from("HVDRUN_SIZE", 1), .every = 50};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--folder") == 0)
            job.folder = argv[i + 1];
        else if (strcmp(argv[i], "--pause-ms") == 0)
            job.pause_ms = (int)strtol(argv[i + 1], NULL, 10);
    }
    if (job.folder == NULL || argc % 2 == 0) {
        fprintf(stderr, "usage: plain_restart --folder FOLDER [--pause-ms MS]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGTERM, on_term);
    printf("rank %d of %d: start %d\n", job.rank, job.size, number_from("HVDRUN_EPOCH", 1));
    for (int i = job.rank; i < ITEMS; i += job.size) {
        if (do_item(&job, i) < 0)
            return 1;
    }
    if (job.rank == 0)
        add_up(&job);
    return 0;
}
