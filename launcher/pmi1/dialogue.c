/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spaces of keys and values, and the answer to each PMI-1 command. The list below is the only
 * one; what a worker says that is not in it is a protocol error, because a worker that gets no
 * answer waits for ever.
 */
#include "pmi1/dialogue.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/text.h"

/* ---- Spaces ---------------------------------------------------------------------------------- */

void kvs_clear(struct kvs *kvs)
{
    map_clear(&kvs->by_key, free);
    free(kvs->entries);
    *kvs = (struct kvs){.count = 0};
}

enum kvs_result kvs_put(struct kvs *kvs, const char *key, const char *value)
{
    struct map_key by = map_text(key);
    if (map_get(&kvs->by_key, by) != NULL)
        return KVS_DUPLICATE;
    size_t key_size = strlen(key) + 1;
    size_t value_size = strlen(value) + 1;
    if (kvs->bytes + key_size + value_size > KVS_BYTES_MAX)
        return KVS_FULL;
    kvs->entries = mem_one_more(kvs->entries, kvs->count, &kvs->room, sizeof(*kvs->entries));
    struct kvs_entry *entry = mem_alloc(sizeof(*entry) + key_size + value_size);
    memcpy(entry->key, key, key_size);
    entry->value = memcpy(entry->key + key_size, value, value_size);
    kvs->entries[kvs->count++] = entry;
    kvs->bytes += key_size + value_size;
    by.bytes = entry->key;
    map_put(&kvs->by_key, by, entry);
    return KVS_OK;
}

const char *kvs_get(const struct kvs *kvs, const char *key)
{
    const struct kvs_entry *entry = map_get(&kvs->by_key, map_text(key));
    return entry == NULL ? NULL : entry->value;
}

/* `name` NULL: a free one. */
static struct space *find_space(struct pmi1_engine *engine, const char *name)
{
    for (int i = 0; i < PMI1_SPACES_MAX; i++)
        if (text_same(engine->spaces[i].name, name))
            return &engine->spaces[i];
    return NULL;
}

struct kvs *pmi1_space(struct pmi1_engine *engine, const char *name)
{
    struct space *space = find_space(engine, name);
    return space == NULL ? NULL : &space->kvs;
}

/* ---- Answers --------------------------------------------------------------------------------- */

#define ANSWER_MAX ((size_t)2 * PMI1_LINE_MAX) /* a stored value and the words around it */

/* Returns 0, for its caller to return. */
__attribute__((format(printf, 3, 4))) static int
answer(struct pmi1_engine *engine, const struct member *member, const char *format, ...)
{
    struct buf line AUTO_BUF = BUF_INIT(ANSWER_MAX);
    va_list args;
    va_start(args, format);
    buf_vprintf(&line, format, args);
    va_end(args);
    buf_putc(&line, '\n');
    engine->ops.send(engine->context, member->rank, buf_text(&line), line.length);
    return 0;
}

void pmi1_release_barrier(struct pmi1_engine *engine)
{
    engine->waiting = 0;
    for (int i = 0; i < engine->local_count; i++)
        if (engine->members[i].state == PMI1_BARRIER)
            engine->members[i].state = PMI1_RUNNING;
    for (int i = 0; i < engine->local_count; i++)
        if (engine->members[i].state == PMI1_RUNNING)
            answer(engine, &engine->members[i], "cmd=barrier_out");
}

/* ---- Commands -------------------------------------------------------------------------------- */

#define NEEDED_MAX 3

struct call { /* of a command */
    struct pmi1_engine *engine;
    struct member *member;
    const struct command *command;
    const struct pmi1_line *line;
    const char *words[NEEDED_MAX]; /* the values of those that it needs */
    struct error *err;
};

struct command {
    const char *name;
    int (*run)(const struct call *call);
    const char *needs[NEEDED_MAX]; /* words */
    enum pmi1_name_request request;
};

static int do_init(const struct call *call)
{
    bool known = strcmp(call->words[0], "1") == 0;
    if (call->member->state != PMI1_SILENT)
        return error_set(call->err, "init came twice");
    if (known)
        call->member->state = PMI1_RUNNING;
    return answer(call->engine, call->member,
                  "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d", known ? 0 : -1);
}

static int do_get_maxes(const struct call *call)
{
    return answer(call->engine, call->member,
                  "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d", PMI1_KVSNAME_MAX,
                  PMI1_KEY_MAX, PMI1_VALUE_MAX);
}

static int do_get_appnum(const struct call *call)
{
    return answer(call->engine, call->member, "cmd=appnum appnum=%d", call->member->app);
}

static int do_get_universe_size(const struct call *call)
{
    return answer(call->engine, call->member, "cmd=universe_size size=%d",
                  call->engine->universe_size);
}

static int do_get_my_kvsname(const struct call *call)
{
    return answer(call->engine, call->member, "cmd=my_kvsname kvsname=%s",
                  call->engine->spaces[0].name);
}

static int do_create_kvs(const struct call *call)
{
    struct pmi1_engine *engine = call->engine;
    struct space *space = find_space(engine, NULL);
    if (space == NULL)
        return answer(engine, call->member, "cmd=newkvs rc=-1 msg=no_more_kvs");
    space->name =
        mem_printf("%s-%d-%d", engine->spaces[0].name, call->member->rank, engine->spaces_made++);
    return answer(engine, call->member, "cmd=newkvs rc=0 kvsname=%s", space->name);
}

static int do_destroy_kvs(const struct call *call)
{
    struct space *space = find_space(call->engine, call->words[0]);
    if (space == NULL || space == call->engine->spaces) /* nobody may destroy the job's own */
        return answer(call->engine, call->member, "cmd=kvs_destroyed rc=-1 msg=kvs_not_found");
    mem_free_at(&space->name);
    kvs_clear(&space->kvs);
    return answer(call->engine, call->member, "cmd=kvs_destroyed rc=0 msg=success");
}

static const char *put(struct pmi1_engine *engine, const char *space, const char *key,
                       const char *value)
{
    struct kvs *kvs = pmi1_space(engine, space);
    if (kvs == NULL)
        return "kvs_not_found";
    if (*key == '\0' || strlen(key) >= PMI1_KEY_MAX)
        return "key_too_long_or_empty";
    if (strlen(value) >= PMI1_VALUE_MAX)
        return "value_too_long";
    enum kvs_result result = kvs_put(kvs, key, value);
    if (result != KVS_OK)
        return result == KVS_DUPLICATE ? "duplicate_key" : "kvs_is_full";
    if (engine->node_count > 1 && buf_printf(&engine->pending, "%s %s %s\n", space, key, value) < 0)
        return "kvs_is_full";
    return NULL;
}

static int do_put(const struct call *call)
{
    const char *why = put(call->engine, call->words[0], call->words[1], call->words[2]);
    return answer(call->engine, call->member, "cmd=put_result rc=%d msg=%s", why != NULL ? -1 : 0,
                  why != NULL ? why : "success");
}

static int do_get(const struct call *call)
{
    const struct kvs *kvs = pmi1_space(call->engine, call->words[0]);
    const char *value = kvs != NULL ? kvs_get(kvs, call->words[1]) : NULL;
    if (value != NULL)
        return answer(call->engine, call->member, "cmd=get_result rc=0 msg=success value=%s",
                      value);
    return answer(call->engine, call->member, "cmd=get_result rc=-1 msg=%s value=unknown",
                  kvs != NULL ? "key_not_found" : "kvs_not_found");
}

static int do_getbyidx(const struct call *call)
{
    int64_t i = 0;
    if (parse_int(call->words[1], 0, INT32_MAX - 1, &i, call->err) < 0)
        return -1;
    const struct kvs *kvs = pmi1_space(call->engine, call->words[0]);
    if (kvs == NULL || (size_t)i >= kvs->count)
        return answer(call->engine, call->member, "cmd=getbyidx_results rc=%s",
                      kvs == NULL ? "-1 reason=kvs_not_found" : "-2 reason=no_more_keyvals");
    return answer(call->engine, call->member, "cmd=getbyidx_results rc=0 nextidx=%d key=%s val=%s",
                  (int)i + 1, kvs->entries[i]->key, kvs->entries[i]->value);
}

/* The last local member releases the barrier, or with several nodes announces it to them. */
static int do_barrier_in(const struct call *call)
{
    struct pmi1_engine *engine = call->engine;
    if (call->member->state == PMI1_BARRIER)
        return error_set(call->err, "a second barrier_in inside the barrier");
    call->member->state = PMI1_BARRIER;
    if (++engine->waiting < engine->local_count)
        return 0;
    if (engine->node_count <= 1) {
        pmi1_release_barrier(engine);
        return 0;
    }
    size_t length = engine->pending.length;
    char *pairs AUTO_FREE = buf_take(&engine->pending);
    engine->ops.barrier_in(engine->context, pairs, length);
    return 0;
}

static int do_finalize(const struct call *call)
{
    if (call->member->state == PMI1_BARRIER)
        return error_set(call->err, "finalize inside a barrier");
    call->member->state = PMI1_FINALIZED;
    return answer(call->engine, call->member, "cmd=finalize_ack");
}

static int do_abort(const struct call *call)
{
    struct member *member = call->member;
    const char *code = pmi1_line_get(call->line, "exitcode");
    const char *text = pmi1_line_get(call->line, "msg");
    int64_t number = 1;
    if (text == NULL) /* MPICH since 4.1 */
        text = pmi1_line_get(call->line, "message");
    if (code != NULL && parse_int(code, INT32_MIN, INT32_MAX, &number, call->err) < 0)
        return -1;
    if (member->state == PMI1_BARRIER)
        call->engine->waiting--;
    member->state = PMI1_ABORTED;
    member->asking = PMI1_ASKS_NOTHING;
    call->engine->ops.abort(call->engine->context, member->rank, (int)number,
                            text != NULL ? text : "");
    return 0;
}

static const char *const name_answers[] = {
    [PMI1_PUBLISH] = "publish_result",
    [PMI1_LOOKUP] = "lookup_result",
    [PMI1_UNPUBLISH] = "unpublish_result",
};

void pmi1_answer_name(struct pmi1_engine *engine, struct member *member,
                      enum pmi1_name_request request, const char *port)
{
    const char *command = name_answers[request];
    member->asking = PMI1_ASKS_NOTHING;
    if (port == NULL)
        answer(engine, member, "cmd=%s info=failed rc=1 msg=%s", command,
               request == PMI1_PUBLISH ? "already_published" : "not_published");
    else if (request == PMI1_LOOKUP)
        answer(engine, member, "cmd=%s info=ok rc=0 port=%s", command, port);
    else
        answer(engine, member, "cmd=%s info=ok rc=0 msg=success", command);
}

static int do_name(const struct call *call)
{
    struct pmi1_engine *engine = call->engine;
    enum pmi1_name_request request = call->command->request;
    const char *service = call->words[0], *port = call->words[1];
    if (strlen(service) >= PMI1_VALUE_MAX || (port != NULL && strlen(port) >= PMI1_VALUE_MAX))
        return answer(engine, call->member, "cmd=%s info=failed rc=1 msg=too_long",
                      name_answers[request]);
    call->member->asking = PMI1_ASKS_NAME;
    engine->ops.name(engine->context, call->member->rank, request, service, port);
    return 0;
}

static int do_spawn(const struct call *call)
{
    struct member *member = call->member;
    if (!call->line->block || member->block.open || member->state == PMI1_BARRIER)
        return error_set(call->err, "a spawn that may not come now, or without its lines");
    spawn_block_open(&member->block);
    return 0;
}

void pmi1_answer_spawn(struct pmi1_engine *engine, struct member *member, bool ok)
{
    member->asking = PMI1_ASKS_NOTHING;
    answer(engine, member, "cmd=spawn_result rc=%d", ok ? 0 : -1);
}

int pmi1_block_line(struct pmi1_engine *engine, struct member *member, const char *bytes,
                    size_t length, struct error *err)
{
    bool known = member->block.refusal != NULL;
    int complete = spawn_block_line(&member->block, bytes, length, err);
    if (complete >= 0 && !known && member->block.refusal != NULL)
        engine->ops.spawn_refused(engine->context, member->rank, member->block.refusal);
    if (complete <= 0)
        return complete;
    struct spawn_block whole = member->block;
    member->block = (struct spawn_block){0};
    member->asking = PMI1_ASKS_SPAWN;
    member->refused = whole.refusal != NULL;
    if (!member->refused)
        engine->ops.spawn(engine->context, member->rank, &whole.request);
    spawn_block_clear(&whole);
    return 0;
}

static const struct command commands[] = {
    {"init", do_init, {"pmi_version"}, 0},
    {"get_maxes", do_get_maxes, {NULL}, 0},
    {"get_appnum", do_get_appnum, {NULL}, 0},
    {"get_universe_size", do_get_universe_size, {NULL}, 0},
    {"get_my_kvsname", do_get_my_kvsname, {NULL}, 0},
    {"create_kvs", do_create_kvs, {NULL}, 0},
    {"destroy_kvs", do_destroy_kvs, {"kvsname"}, 0},
    {"put", do_put, {"kvsname", "key", "value"}, 0},
    {"get", do_get, {"kvsname", "key"}, 0},
    {"getbyidx", do_getbyidx, {"kvsname", "idx"}, 0},
    {"barrier_in", do_barrier_in, {NULL}, 0},
    {"publish_name", do_name, {"service", "port"}, PMI1_PUBLISH},
    {"lookup_name", do_name, {"service"}, PMI1_LOOKUP},
    {"unpublish_name", do_name, {"service"}, PMI1_UNPUBLISH},
    {"spawn", do_spawn, {NULL}, 0},
    {"finalize", do_finalize, {NULL}, 0},
    {"abort", do_abort, {NULL}, 0},
};

/* Why a command may not come now; NULL: it may. */
static const char *untimely(const struct member *member, int (*run)(const struct call *call))
{
    if (run == do_abort) /* heard in every state: it may be a library's last word */
        return NULL;
    if (member->state == PMI1_SILENT && run != do_init)
        return "before init";
    if (member->state == PMI1_FINALIZED || member->state == PMI1_ABORTED)
        return "after the end of the dialogue";
    /* Else a rank could ask again and again, and miss the answer in a barrier. */
    if (member->asking != PMI1_ASKS_NOTHING)
        return "before the answer to the last request";
    if ((member->block.open || spawn_block_is_due(&member->block)) && run != do_spawn)
        return "inside a spawn";
    return NULL;
}

static int run(struct pmi1_engine *engine, struct member *member, const struct command *command,
               const struct pmi1_line *line, struct error *err)
{
    struct call call = {engine, member, command, line, {NULL}, err};
    const char *why = untimely(member, command->run);
    if (why != NULL)
        return error_set(err, "%s came %s", command->name, why);
    for (int i = 0; i < NEEDED_MAX && command->needs[i] != NULL; i++) {
        call.words[i] = pmi1_line_get(line, command->needs[i]);
        if (call.words[i] == NULL)
            return error_set(err, "%s without %s=", command->name, command->needs[i]);
    }
    return command->run(&call);
}

int pmi1_command(struct pmi1_engine *engine, struct member *member, const struct pmi1_line *line,
                 struct error *err)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, line->command) != 0)
            continue;
        return run(engine, member, &commands[i], line, err);
    }
    /* Rubbish is not repeated: it may hold what a terminal obeys. */
    size_t length = strnlen(line->command, PMI1_KEY_MAX);
    if (!name_is_safe(line->command, length))
        return error_set(err, "an unknown, unprintable command");
    return error_set(err, "the unknown command %.*s", (int)length, line->command);
}
