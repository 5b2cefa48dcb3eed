/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/events_command.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strv.h"
#include "driver/tell/json_text.h"
#include "driver/tell/tell.h"
#include "io/program.h"
#include "model/settings/split.h"

struct slot {
    struct events_command *command;
    struct program *program; /* NULL: free */
};

struct events_command {
    const struct job *job;
    struct strv argv;
    struct slot slots[EVENTS_AT_ONCE];
    json_t *waiting; /* an array, the oldest first */
    int missed;      /* since the last event that got a place */
    bool complained;
    struct loop_timer *limit; /* after the end of the job */
    void (*over)(void *context);
    void *context;
};

struct events_command *events_command_create(const struct job *job, const char *text,
                                             struct error *err)
{
    if (text == NULL)
        return NULL;
    struct events_command *command =
        MEM_NEW((struct events_command){.job = job, .waiting = json_array()});
    for (int i = 0; i < EVENTS_AT_ONCE; i++)
        command->slots[i].command = command;
    if (words_split(text, &command->argv, err) == 0)
        return command;
    events_command_destroy(command);
    return NULL;
}

void events_command_destroy(struct events_command *command)
{
    if (command == NULL)
        return;
    for (int i = 0; i < EVENTS_AT_ONCE; i++)
        program_cancel(command->slots[i].program);
    json_decref(command->waiting);
    loop_timer_destroy(command->limit);
    strv_destroy(&command->argv);
    free(command);
}

/* Under which name the command hears of it; NULL: it does not. An exit that hvdrun caused, and one
 * with status 0, is no failure. */
static const char *name_of(const char *event, const json_t *object)
{
    static const struct {
        const char *event, *name;
    } names[] = {{"job_running", "started"}, {"node_lost", "host_lost"},
                 {"hung", "hung"},           {"job_end", "ended"},
                 {"epoch", "restarted"},     {"worker_exit", "rank_failed"}};
    const char *name = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && name == NULL; i++)
        name = strcmp(names[i].event, event) == 0 ? names[i].name : NULL;
    if (name == NULL)
        return NULL;
    const json_t *code = json_object_get(object, "exit_code");
    bool fine = json_is_integer(code) && json_integer_value(code) == 0;
    bool ours = json_is_true(json_object_get(object, "by_hvdrun"));
    if (strcmp(name, "rank_failed") == 0 && (fine || ours))
        return NULL;
    bool first = json_integer_value(json_object_get(object, "epoch")) == 1;
    return strcmp(name, "restarted") == 0 && first ? NULL : name;
}

static void run_done(void *context, const struct program_result *result);

static struct slot *free_slot(struct events_command *command)
{
    for (int i = 0; i < EVENTS_AT_ONCE; i++) {
        if (command->slots[i].program == NULL)
            return &command->slots[i];
    }
    return NULL;
}

static void run(struct slot *slot, const json_t *object)
{
    const struct events_command *command = slot->command;
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(16));
    char *input AUTO_FREE = mem_printf("%s\n", text != NULL ? text : "{}");
    const struct program_spec spec = {.loop = command->job->loop,
                                      .helpers = job_part(command->job, helpers),
                                      .log = &command->job->log,
                                      .argv = strv_items(&command->argv),
                                      .input = input,
                                      .input_length = strlen(input),
                                      .drops_excess = true,
                                      .time_max_ms = EVENTS_LIMIT_MS};
    free(text);
    slot->program = program_start(&spec, run_done, slot);
}

static bool is_idle(const struct events_command *command)
{
    bool idle = json_array_size(command->waiting) == 0;
    for (int i = 0; i < EVENTS_AT_ONCE; i++)
        idle = idle && command->slots[i].program == NULL;
    return idle;
}

static void run_next(struct events_command *command)
{
    struct slot *slot = free_slot(command);
    if (slot == NULL || json_array_size(command->waiting) == 0)
        return;
    run(slot, json_array_get(command->waiting, 0));
    json_array_remove(command->waiting, 0);
}

static void run_done(void *context, const struct program_result *result)
{
    struct slot *slot = context;
    struct events_command *command = slot->command;
    slot->program = NULL;
    if (result->why != NULL && !command->complained)
        log_warning(&command->job->log, "--on-event: %s; hvdrun does not report more of this",
                    result->why);
    command->complained |= result->why != NULL;
    run_next(command);
    if (command->over != NULL && is_idle(command))
        command->over(command->context);
}

/* A job that ends says so in any case: the oldest event makes way. */
static bool has_room(struct events_command *command, const char *name)
{
    if (json_array_size(command->waiting) < EVENTS_WAITING)
        return true;
    command->missed++;
    if (strcmp(name, "ended") != 0)
        return false;
    json_array_remove(command->waiting, 0);
    return true;
}

void events_command_take(struct events_command *command, const char *event, const json_t *object)
{
    const char *name = command == NULL ? NULL : name_of(event, object);
    if (name == NULL || !has_room(command, name))
        return;
    char *line AUTO_FREE = status_command(command->job);
    json_t *whole = json_object();
    json_object_update(whole, (json_t *)object);
    json_object_set_new(whole, "event", json_string(name));
    json_object_set_new(whole, "job", json_text(command->job->request->job_id));
    json_object_set_new(whole, "command", json_text(line));
    json_object_set_new(whole, "missed", json_integer(command->missed));
    command->missed = 0;
    json_array_append_new(command->waiting, whole);
    run_next(command);
}

static void limit_over(void *context)
{
    struct events_command *command = context;
    if (!command->complained)
        log_warning(&command->job->log, "--on-event: hvdrun does not wait longer for %s",
                    command->argv.items[0]);
    command->over(command->context);
}

bool events_command_finish(struct events_command *command, void (*over)(void *context),
                           void *context)
{
    if (command == NULL || is_idle(command))
        return false;
    command->over = over;
    command->context = context;
    command->limit = loop_timer_create(command->job->loop, limit_over, command);
    loop_timer_set(command->limit, EVENTS_LIMIT_MS);
    return true;
}
