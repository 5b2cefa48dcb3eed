/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/discovery.h"

#include <errno.h>
#include <paths.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/strv.h"
#include "driver/elastic/discovery_test.h"
#include "io/program.h"
#include "io/watch.h"
#include "model/hosts/discovered.h"

/*
 * Decides when the content of a file that other programs write counts: when two reads in a row
 * agree. So a file that is half written, or that is missing between its removal and its
 * replacement, is never taken for a new list. The very first read counts at once. No I/O, no clock.
 */

#define LOOKS_MAX 20

enum discovery_settled discovery_settle_look(struct discovery_settle *settle, bool readable,
                                             const char *bytes, size_t length)
{
    uint64_t seen = hash_add(hash_add(HASH_START, &readable, sizeof(readable)), bytes, length);
    bool same = settle->any && seen == settle->known;
    bool settled = !settle->any || settle->looks + 1 >= LOOKS_MAX ||
                   (settle->looks > 0 && seen == settle->candidate);
    settle->candidate = seen;
    if (!same && !settled) {
        settle->looks++;
        return SETTLED_AGAIN;
    }
    settle->any = true;
    settle->known = seen;
    settle->looks = 0;
    return same ? SETTLED_SAME : SETTLED_NEW;
}

#define POLL_MS 5000
#define HEARD_MS 20      /* from a change of the file to the first look */
#define WRITING_MS 1000  /* the same while another process may still write the file */
#define RESTLESS_MS 5000 /* after this time a look follows even if the file keeps changing */
#define AGAIN_MS 100     /* between two looks that must agree */

struct discovery {
    struct discovery_config config;
    const struct discovery_ops *ops;
    void *context;
    char *file;        /* that is watched; NULL: a script it is */
    char *path, *name; /* of the program that runs; for messages */
    struct strv argv;
    struct program *run;      /* NULL: none now */
    struct loop_timer *timer; /* the next run */
    bool begun, paused, is_over;

    bool any; /* `last` has been reported */
    struct host_list last;
    char *complaint; /* the failure reported last; NULL: the last run succeeded */

    /* of a file */
    struct watch *watch;
    struct discovery_settle settle;
    bool heard;             /* of a change since the run began */
    int64_t restless_since; /* 0: no change waits for its look */
};

static void run_done(void *context, const struct program_result *result);

static void start_run(void *context)
{
    struct discovery *discovery = context;
    discovery->heard = false;
    discovery->restless_since = 0;
    const struct program_spec spec = {.loop = discovery->config.loop,
                                      .helpers = discovery->config.helpers,
                                      .log = discovery->config.log,
                                      .path = discovery->path,
                                      .argv = strv_items(&discovery->argv),
                                      .name = discovery->name,
                                      .output_max = DISCOVERED_BYTES_MAX,
                                      .time_max_ms = discovery->config.limit_ms};
    discovery->run = program_start(&spec, run_done, discovery);
}

static void next_run(struct discovery *discovery, int64_t after_ms)
{
    if (!discovery->is_over && !discovery->paused)
        loop_timer_set(discovery->timer, after_ms);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Equal except for numbers, of any length. */
static bool says_the_same(const char *a, const char *b)
{
    while (*a != '\0' || *b != '\0') {
        if (is_digit(*a) && is_digit(*b)) {
            while (is_digit(*a))
                a++;
            while (is_digit(*b))
                b++;
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return true;
}

/* Callers must return right after it: it may destroy the discovery. */
static void tell_failure(struct discovery *discovery, const char *why)
{
    if (discovery->complaint != NULL && says_the_same(discovery->complaint, why))
        return;
    mem_replace(&discovery->complaint, why);
    discovery->ops->failed(discovery->context, why, !discovery->any);
}

static void tell_hosts(struct discovery *discovery, struct host_list *list)
{
    if (discovery->complaint != NULL)
        log_info(discovery->config.log, "%s works again", discovery->name);
    mem_free_at(&discovery->complaint);
    bool same = discovery->any && discovered_same(&discovery->last, list);
    struct host_list before = discovery->last;
    discovery->last = *list;
    *list = (struct host_list){0};
    hosts_destroy(&before);
    discovery->any = true;
    if (!same)
        discovery->ops->hosts(discovery->context, &discovery->last);
}

static int parse(const struct discovery *discovery, const struct program_result *result,
                 struct host_list *list, struct error *err)
{
    int slots = discovery->config.slots_per_host;
    if (discovery->file != NULL && result->why != NULL && result->last_line[0] != '\0')
        return error_set(err, "cannot read the hostfile: %s", result->last_line);
    if (result->why != NULL)
        return error_set(err, "%s", result->why);
    if (discovery->file != NULL)
        return discovered_parse_file(result->text, result->length, discovery->file, slots, list,
                                     err);
    int parsed = discovered_parse(result->text, result->length, slots, list, err);
    return parsed < 0 ? error_wrap(err, "the output of %s", discovery->name) : 0;
}

static void tell(struct discovery *discovery, const struct program_result *result, int64_t next_ms)
{
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    bool parsed = parse(discovery, result, &list, &err) == 0;
    discovery->is_over = !parsed && !discovery->any;
    next_run(discovery, next_ms);
    if (parsed)
        tell_hosts(discovery, &list);
    else
        tell_failure(discovery, err.text);
}

/* The file may have changed while it was read. */
static int64_t until_next_look(const struct discovery *discovery)
{
    if (discovery->heard)
        return AGAIN_MS;
    return discovery->config.poll_ms > 0 ? discovery->config.poll_ms : POLL_MS;
}

static void take_look(struct discovery *discovery, const struct program_result *result)
{
    bool readable = result->why == NULL;
    const char *bytes = readable ? result->text : result->why;
    size_t length = readable ? result->length : strlen(result->why);
    switch (discovery_settle_look(&discovery->settle, readable, bytes, length)) {
    case SETTLED_SAME: next_run(discovery, until_next_look(discovery)); break;
    case SETTLED_AGAIN:
        watch_refresh(discovery->watch); /* the path may lead elsewhere now */
        next_run(discovery, AGAIN_MS);
        break;
    case SETTLED_NEW: tell(discovery, result, until_next_look(discovery)); break;
    }
}

static void run_done(void *context, const struct program_result *result)
{
    struct discovery *discovery = context;
    discovery->run = NULL;
    if (discovery->paused)
        return;
    if (discovery->file != NULL)
        take_look(discovery, result);
    else
        tell(discovery, result, discovery->config.period_ms);
}

static void file_changed(void *context, bool whole)
{
    struct discovery *discovery = context;
    int64_t now = loop_now_ms(discovery->config.loop);
    if (discovery->restless_since == 0)
        discovery->restless_since = now;
    discovery->heard = true;
    bool waits = loop_timer_is_set(discovery->timer);
    if (discovery->run == NULL && waits && now - discovery->restless_since < RESTLESS_MS)
        next_run(discovery, whole ? HEARD_MS : WRITING_MS);
}

/* Looks the program up as the user named it. A name with blanks that is not found is a line for
 * the shell. */
static int find_script(struct discovery *discovery, const char *script, struct error *err)
{
    discovery->path = child_find(script, getenv("PATH"), NULL, err);
    if (discovery->path != NULL) {
        strv_add(&discovery->argv, script);
        return 0;
    }
    if (err->status == STATUS_NOT_FOUND && strpbrk(script, " \t\n") != NULL) {
        *err = (struct error)ERROR_INIT;
        discovery->path = mem_strdup(_PATH_BSHELL);
        strv_add(&discovery->argv, "sh");
        strv_add(&discovery->argv, "-c");
        strv_add(&discovery->argv, script);
        return 0;
    }
    struct error why = *err;
    if (why.errnum == EACCES)
        return error_status(err, why.status,
                            "--host-discovery-script: %s; chmod +x makes it executable", why.text);
    return error_wrap(err, "--host-discovery-script");
}

static int find_program(struct discovery *discovery, const struct discovery_config *config,
                        struct error *err)
{
    if ((config->script == NULL) == (config->watch == NULL))
        return error_usage(
            err, "--host-discovery-script and --hosts-watch both name the hosts; give one of them");
    if (config->script != NULL) {
        discovery->name = mem_strdup(config->script);
        return find_script(discovery, config->script, err);
    }
    discovery->file = mem_strdup(config->watch);
    discovery->name = mem_printf("reading %s", config->watch);
    discovery->path = child_find("cat", getenv("PATH"), NULL, err);
    if (discovery->path == NULL)
        return error_wrap(err, "cannot read %s", config->watch);
    strv_add(&discovery->argv, "cat");
    strv_add(&discovery->argv, "--");
    strv_add(&discovery->argv, config->watch);
    return 0;
}

struct discovery *discovery_create(const struct discovery_config *config,
                                   const struct discovery_ops *ops, void *context,
                                   struct error *err)
{
    struct error why = ERROR_INIT;
    struct discovery *discovery =
        MEM_NEW((struct discovery){.config = *config, .ops = ops, .context = context});
    discovery->config.script = discovery->config.watch = NULL; /* copied where they are wanted */
    if (find_program(discovery, config, &why) < 0) {
        discovery_destroy(discovery);
        error_status(err, why.status, "%s", why.text);
        return NULL;
    }
    discovery->timer = loop_timer_create(config->loop, start_run, discovery);
    return discovery;
}

void discovery_begin(struct discovery *discovery)
{
    discovery->begun = true;
    if (discovery->file != NULL)
        discovery->watch =
            watch_create(discovery->config.loop, discovery->file, file_changed, discovery);
    start_run(discovery);
}

void discovery_pause(struct discovery *discovery, bool paused)
{
    discovery->paused = paused;
    if (paused)
        loop_timer_clear(discovery->timer);
    else if (discovery->begun && discovery->run == NULL)
        next_run(discovery, 0);
}

void discovery_destroy(struct discovery *discovery)
{
    if (discovery == NULL)
        return;
    program_cancel(discovery->run);
    watch_destroy(discovery->watch);
    loop_timer_destroy(discovery->timer);
    hosts_destroy(&discovery->last);
    strv_destroy(&discovery->argv);
    free(discovery->complaint);
    free(discovery->file);
    free(discovery->path);
    free(discovery->name);
    free(discovery);
}
