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

#include "base/map.h"
#include "base/mem.h"
#include "base/parse.h"

/* ---- Spaces ---------------------------------------------------------------------------------- */

struct entry {
    const char *value; /* follows the key */
    char key[];
};

struct kvs {
    struct entry **entries; /* their order is what getbyidx walks */
    size_t count, room;
    struct map by_key;
    size_t bytes;
};

struct kvs *kvs_create(void)
{
    return mem_alloc(sizeof(struct kvs));
}

void kvs_destroy(struct kvs *kvs)
{
    if (kvs == NULL)
        return;
    map_clear(&kvs->by_key, free);
    free(kvs->entries);
    free(kvs);
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
    struct entry *entry = mem_alloc(sizeof(*entry) + key_size + value_size);
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
    const struct entry *entry = map_get(&kvs->by_key, map_text(key));
    return entry == NULL ? NULL : entry->value;
}

size_t kvs_count(const struct kvs *kvs)
{
    return kvs->count;
}

const char *kvs_key_at(const struct kvs *kvs, size_t index)
{
    return kvs->entries[index]->key;
}

const char *kvs_value_at(const struct kvs *kvs, size_t index)
{
    return kvs->entries[index]->value;
}

/* ---- Answers --------------------------------------------------------------------------------- */

#define ANSWER_MAX ((size_t)2 * PMI1_LINE_MAX) /* a stored value and the words around it */

struct kvs *pmi1_space(struct pmi1_engine *engine, const char *name)
{
    for (int i = 0; name != NULL && i < PMI1_SPACES_MAX; i++)
        if (engine->spaces[i].name != NULL && strcmp(engine->spaces[i].name, name) == 0)
            return engine->spaces[i].kvs;
    return NULL;
}

__attribute__((format(printf, 3, 4))) static void
answer(struct pmi1_engine *engine, const struct member *member, const char *format, ...)
{
    struct buf line AUTO_BUF = BUF_INIT(ANSWER_MAX);
    va_list args;
    va_start(args, format);
    buf_vprintf(&line, format, args);
    va_end(args);
    buf_putc(&line, '\n');
    engine->ops.send(engine->context, member->rank, buf_text(&line), line.length);
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

/* The last local member releases the barrier, or with several nodes announces it to them. */
static int enter_barrier(struct pmi1_engine *engine, struct member *member, struct error *err)
{
    if (member->state == PMI1_BARRIER)
        return error_set(err, "a second barrier_in inside the barrier");
    member->state = PMI1_BARRIER;
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

/* ---- Commands -------------------------------------------------------------------------------- */

typedef int command_fn(struct pmi1_engine *engine, struct member *member,
                       const struct pmi1_line *line, struct error *err);

static int need(const struct pmi1_line *line, const char *name, const char **value,
                struct error *err)
{
    *value = pmi1_line_get(line, name);
    return *value != NULL ? 0 : error_set(err, "%s without %s=", line->command, name);
}

static int do_init(struct pmi1_engine *engine, struct member *member, const struct pmi1_line *line,
                   struct error *err)
{
    const char *version = NULL;
    if (need(line, "pmi_version", &version, err) < 0)
        return -1;
    if (member->state != PMI1_SILENT)
        return error_set(err, "init came twice");
    if (strcmp(version, "1") != 0) {
        answer(engine, member, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1");
        return 0;
    }
    member->state = PMI1_RUNNING;
    answer(engine, member, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    return 0;
}

static int do_get_maxes(struct pmi1_engine *engine, struct member *member,
                        const struct pmi1_line *line, struct error *err)
{
    (void)line, (void)err;
    answer(engine, member, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d", PMI1_KVSNAME_MAX,
           PMI1_KEY_MAX, PMI1_VALUE_MAX);
    return 0;
}

static int do_get_appnum(struct pmi1_engine *engine, struct member *member,
                         const struct pmi1_line *line, struct error *err)
{
    (void)line, (void)err;
    answer(engine, member, "cmd=appnum appnum=%d", member->app);
    return 0;
}

static int do_get_universe_size(struct pmi1_engine *engine, struct member *member,
                                const struct pmi1_line *line, struct error *err)
{
    (void)line, (void)err;
    answer(engine, member, "cmd=universe_size size=%d", engine->universe_size);
    return 0;
}

static int do_get_my_kvsname(struct pmi1_engine *engine, struct member *member,
                             const struct pmi1_line *line, struct error *err)
{
    (void)line, (void)err;
    answer(engine, member, "cmd=my_kvsname kvsname=%s", engine->spaces[0].name);
    return 0;
}

static int do_create_kvs(struct pmi1_engine *engine, struct member *member,
                         const struct pmi1_line *line, struct error *err)
{
    (void)line, (void)err;
    int i = 0;
    while (i < PMI1_SPACES_MAX && engine->spaces[i].name != NULL)
        i++;
    if (i == PMI1_SPACES_MAX) {
        answer(engine, member, "cmd=newkvs rc=-1 msg=no_more_kvs");
        return 0;
    }
    char *name =
        mem_printf("%s-%d-%d", engine->spaces[0].name, member->rank, engine->spaces_made++);
    engine->spaces[i] = (struct space){name, kvs_create()};
    answer(engine, member, "cmd=newkvs rc=0 kvsname=%s", name);
    return 0;
}

static int do_destroy_kvs(struct pmi1_engine *engine, struct member *member,
                          const struct pmi1_line *line, struct error *err)
{
    const char *name = NULL;
    if (need(line, "kvsname", &name, err) < 0)
        return -1;
    /* No worker may destroy the job's own space, index 0. */
    for (int i = 1; i < PMI1_SPACES_MAX; i++) {
        struct space *space = &engine->spaces[i];
        if (space->name == NULL || strcmp(space->name, name) != 0)
            continue;
        free(space->name);
        kvs_destroy(space->kvs);
        *space = (struct space){0};
        answer(engine, member, "cmd=kvs_destroyed rc=0 msg=success");
        return 0;
    }
    answer(engine, member, "cmd=kvs_destroyed rc=-1 msg=kvs_not_found");
    return 0;
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

static int do_put(struct pmi1_engine *engine, struct member *member, const struct pmi1_line *line,
                  struct error *err)
{
    const char *space = NULL;
    const char *key = NULL;
    const char *value = NULL;
    if (need(line, "kvsname", &space, err) < 0 || need(line, "key", &key, err) < 0 ||
        need(line, "value", &value, err) < 0)
        return -1;
    const char *why = put(engine, space, key, value);
    answer(engine, member, "cmd=put_result rc=%d msg=%s", why != NULL ? -1 : 0,
           why != NULL ? why : "success");
    return 0;
}

static int do_get(struct pmi1_engine *engine, struct member *member, const struct pmi1_line *line,
                  struct error *err)
{
    const char *space = NULL;
    const char *key = NULL;
    if (need(line, "kvsname", &space, err) < 0 || need(line, "key", &key, err) < 0)
        return -1;
    const struct kvs *kvs = pmi1_space(engine, space);
    const char *value = kvs != NULL ? kvs_get(kvs, key) : NULL;
    if (value != NULL)
        answer(engine, member, "cmd=get_result rc=0 msg=success value=%s", value);
    else
        answer(engine, member, "cmd=get_result rc=-1 msg=%s value=unknown",
               kvs != NULL ? "key_not_found" : "kvs_not_found");
    return 0;
}

static int do_getbyidx(struct pmi1_engine *engine, struct member *member,
                       const struct pmi1_line *line, struct error *err)
{
    const char *space = NULL;
    const char *index = NULL;
    int64_t i = 0;
    if (need(line, "kvsname", &space, err) < 0 || need(line, "idx", &index, err) < 0)
        return -1;
    if (parse_int(index, 0, INT32_MAX - 1, &i, err) < 0)
        return -1;
    const struct kvs *kvs = pmi1_space(engine, space);
    if (kvs == NULL)
        answer(engine, member, "cmd=getbyidx_results rc=-1 reason=kvs_not_found");
    else if ((size_t)i >= kvs_count(kvs))
        answer(engine, member, "cmd=getbyidx_results rc=-2 reason=no_more_keyvals");
    else
        answer(engine, member, "cmd=getbyidx_results rc=0 nextidx=%d key=%s val=%s", (int)i + 1,
               kvs_key_at(kvs, (size_t)i), kvs_value_at(kvs, (size_t)i));
    return 0;
}

static int do_barrier_in(struct pmi1_engine *engine, struct member *member,
                         const struct pmi1_line *line, struct error *err)
{
    (void)line;
    return enter_barrier(engine, member, err);
}

static int do_finalize(struct pmi1_engine *engine, struct member *member,
                       const struct pmi1_line *line, struct error *err)
{
    (void)line;
    if (member->state == PMI1_BARRIER)
        return error_set(err, "finalize inside a barrier");
    member->state = PMI1_FINALIZED;
    answer(engine, member, "cmd=finalize_ack");
    return 0;
}

static int do_abort(struct pmi1_engine *engine, struct member *member, const struct pmi1_line *line,
                    struct error *err)
{
    const char *code = pmi1_line_get(line, "exitcode");
    const char *text = pmi1_line_get(line, "msg");
    int64_t number = 1;
    if (text == NULL) /* MPICH since 4.1 */
        text = pmi1_line_get(line, "message");
    if (code != NULL && parse_int(code, INT32_MIN, INT32_MAX, &number, err) < 0)
        return -1;
    if (member->state == PMI1_BARRIER)
        engine->waiting--;
    member->state = PMI1_ABORTED;
    member->asking = PMI1_ASKS_NOTHING;
    engine->ops.abort(engine->context, member->rank, (int)number, text != NULL ? text : "");
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

static int name_request(struct pmi1_engine *engine, struct member *member,
                        const struct pmi1_line *line, enum pmi1_name_request request,
                        struct error *err)
{
    const char *service = NULL;
    const char *port = NULL;
    if (need(line, "service", &service, err) < 0)
        return -1;
    if (request == PMI1_PUBLISH && need(line, "port", &port, err) < 0)
        return -1;
    if (strlen(service) >= PMI1_VALUE_MAX || (port != NULL && strlen(port) >= PMI1_VALUE_MAX)) {
        answer(engine, member, "cmd=%s info=failed rc=1 msg=too_long", name_answers[request]);
        return 0;
    }
    member->asking = PMI1_ASKS_NAME;
    engine->ops.name(engine->context, member->rank, request, service, port);
    return 0;
}

static int do_publish_name(struct pmi1_engine *engine, struct member *member,
                           const struct pmi1_line *line, struct error *err)
{
    return name_request(engine, member, line, PMI1_PUBLISH, err);
}

static int do_lookup_name(struct pmi1_engine *engine, struct member *member,
                          const struct pmi1_line *line, struct error *err)
{
    return name_request(engine, member, line, PMI1_LOOKUP, err);
}

static int do_unpublish_name(struct pmi1_engine *engine, struct member *member,
                             const struct pmi1_line *line, struct error *err)
{
    return name_request(engine, member, line, PMI1_UNPUBLISH, err);
}

static int do_spawn(struct pmi1_engine *engine, struct member *member, const struct pmi1_line *line,
                    struct error *err)
{
    (void)engine;
    if (!line->block || member->block.open || member->state == PMI1_BARRIER)
        return error_set(err, "a spawn that may not come now, or without its lines");
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

static const struct command {
    const char *name;
    command_fn *run;
} commands[] = {
    {"init", do_init},
    {"get_maxes", do_get_maxes},
    {"get_appnum", do_get_appnum},
    {"get_universe_size", do_get_universe_size},
    {"get_my_kvsname", do_get_my_kvsname},
    {"create_kvs", do_create_kvs},
    {"destroy_kvs", do_destroy_kvs},
    {"put", do_put},
    {"get", do_get},
    {"getbyidx", do_getbyidx},
    {"barrier_in", do_barrier_in},
    {"publish_name", do_publish_name},
    {"lookup_name", do_lookup_name},
    {"unpublish_name", do_unpublish_name},
    {"spawn", do_spawn},
    {"finalize", do_finalize},
    {"abort", do_abort},
};

/* Why a command may not come now; NULL: it may. */
static const char *untimely(const struct member *member, command_fn *run)
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

int pmi1_command(struct pmi1_engine *engine, struct member *member, const struct pmi1_line *line,
                 struct error *err)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, line->command) != 0)
            continue;
        const char *why = untimely(member, commands[i].run);
        if (why != NULL)
            return error_set(err, "%s came %s", line->command, why);
        return commands[i].run(engine, member, line, err);
    }
    /* Rubbish is not repeated: it may hold what a terminal obeys. */
    size_t length = strnlen(line->command, PMI1_KEY_MAX);
    if (!name_is_safe(line->command, length))
        return error_set(err, "an unknown, unprintable command");
    return error_set(err, "the unknown command %.*s", (int)length, line->command);
}
