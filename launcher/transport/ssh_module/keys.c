/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/keys.h"

#include "base/mem.h"
#include "transport/ssh_module/key_agent.h"
#include "transport/ssh_module/key_file.h"

#define KEYS_MAX 256

struct ssh_keys {
    struct key *items[KEYS_MAX];
    size_t count;
    struct key_agent *agent;
    char *left_to_ssh; /* the first of its kind */
    char *unusable;    /* likewise */
};

/* What goes on while keys are loaded. */
struct loading {
    struct ssh_keys *keys;
    struct key_file *files; /* one per name in the configuration */
    size_t file_count;
    bool identities_only;
    struct key *named[KEYS_MAX]; /* the agent's that files name, in the order of the files */
    struct key *others[KEYS_MAX];
    size_t other_count;
};

static void remember(char **what, const char *name, const char *why)
{
    if (!*what)
        *what = mem_printf("%s: %s", name, why);
}

static bool add(struct ssh_keys *keys, struct key *key)
{
    if (keys->count == KEYS_MAX)
        return false;
    keys->items[keys->count++] = key;
    return true;
}

static void take_agent_key(void *context, struct byte_view blob, const char *comment)
{
    struct loading *loading = context;
    AUTO_FREE char *origin = mem_printf("%s in the agent", comment[0] ? comment : "one");
    struct error why = ERROR_INIT;
    struct key *key;
    size_t named = 0;

    while (named < loading->file_count &&
           !view_equal(buf_view(&loading->files[named].public), blob))
        named++;
    if (named == loading->file_count && loading->identities_only)
        return;
    key = key_create_public(blob, origin, &why);
    if (!key) {
        remember(&loading->keys->left_to_ssh, origin, why.text);
        return;
    }
    if (named < loading->file_count && named < KEYS_MAX && !loading->named[named])
        loading->named[named] = key;
    else if (named == loading->file_count && loading->other_count < KEYS_MAX)
        loading->others[loading->other_count++] = key;
    else
        key_destroy(key); /* twice in the agent */
}

static void load_agent(struct loading *loading, const char *socket_path, struct strv *notes)
{
    struct error why = ERROR_INIT;

    loading->keys->agent = key_agent_create(socket_path, &why);
    if (!loading->keys->agent ||
        key_agent_list(loading->keys->agent, take_agent_key, loading, &why) < 0)
        strv_add(notes, why.text);
}

static void load_files(struct loading *loading, const struct ssh_keys_config *config)
{
    while (config->files && config->files[loading->file_count] && loading->file_count < KEYS_MAX)
        loading->file_count++;
    loading->files = mem_array(loading->file_count + 1, sizeof *loading->files);
    for (size_t i = 0; i < loading->file_count; i++)
        key_file_read(&loading->files[i], config->files[i]);
}

/* Of a file whose key the agent does not have. */
static void take_file(struct loading *loading, size_t index, const char *name, struct strv *notes)
{
    struct key_file *file = &loading->files[index];
    struct ssh_keys *keys = loading->keys;

    if (file->kind == KEY_FILE_MISSING)
        return;
    if (file->kind == KEY_FILE_USABLE) {
        if (add(keys, file->key))
            file->key = NULL;
        return;
    }
    strv_printf(notes, "%s: %s", name, file->reason.text);
    remember(&keys->unusable, name, file->reason.text);
    if (file->kind == KEY_FILE_NEEDS_SSH && file->public.length > 0 &&
        !key_type_find(key_blob_type(buf_view(&file->public))))
        remember(&keys->left_to_ssh, name, file->reason.text);
}

static void put_in_order(struct loading *loading, const struct ssh_keys_config *config,
                         struct strv *notes)
{
    struct ssh_keys *keys = loading->keys;

    for (size_t i = 0; i < loading->file_count; i++) {
        if (loading->named[i] && loading->files[i].kind == KEY_FILE_USABLE) {
            key_destroy(loading->named[i]); /* we sign faster, and the agent may be locked */
            loading->named[i] = loading->files[i].key;
            loading->files[i].key = NULL;
        }
        if (loading->named[i])
            add(keys, loading->named[i]);
        if (loading->files[i].certificate)
            remember(&keys->left_to_ssh, config->files[i], "there is a certificate next to it");
    }
    for (size_t i = 0; i < loading->other_count; i++) {
        if (!add(keys, loading->others[i]))
            key_destroy(loading->others[i]);
    }
    for (size_t i = 0; i < loading->file_count; i++) {
        if (!loading->named[i])
            take_file(loading, i, config->files[i], notes);
        key_file_destroy(&loading->files[i]);
    }
}

struct ssh_keys *keys_create(const struct ssh_keys_config *config, struct strv *notes,
                             struct error *err)
{
    struct ssh_keys *keys = mem_alloc(sizeof *keys);
    struct loading *loading = mem_alloc(sizeof *loading);

    loading->keys = keys;
    loading->identities_only = config->identities_only;
    load_files(loading, config);
    if (config->agent_socket)
        load_agent(loading, config->agent_socket, notes);
    put_in_order(loading, config, notes);
    size_t file_count = loading->file_count;
    mem_free_at(&loading->files);
    mem_free_at(&loading);
    if (keys->count > 0 || keys->left_to_ssh)
        return keys;
    if (keys->unusable)
        error_set(err, "cannot use any SSH key: %s", keys->unusable);
    else if (file_count == 1) /* one that was named: the usual ones are several */
        error_set(err,
                  "there is no file %s: correct its name, or add a key to an agent with ssh-add",
                  config->files[0]);
    else
        error_set(err, "there is no SSH key: create one with ssh-keygen, add one to an agent with "
                       "ssh-add, or name one with --ssh-identity-file");
    keys_destroy(keys);
    return NULL;
}

void keys_destroy(struct ssh_keys *keys)
{
    if (!keys)
        return;
    for (size_t i = 0; i < keys->count; i++)
        key_destroy(keys->items[i]);
    key_agent_destroy(keys->agent);
    mem_free_at(&keys->left_to_ssh);
    mem_free_at(&keys->unusable);
    mem_free_at(&keys);
}

size_t keys_count(const struct ssh_keys *keys)
{
    return keys ? keys->count : 0;
}

const struct key *keys_get(const struct ssh_keys *keys, size_t index)
{
    return keys->items[index];
}

int keys_sign(struct ssh_keys *keys, const struct key *key, struct byte_view data,
              struct buf *signature, struct error *err)
{
    if (key->private)
        return key_sign(key, data, signature, err);
    if (!keys->agent)
        return error_set(err, "there is no key agent to sign with %s", key->origin);
    return key_agent_sign(keys->agent, key, data, signature, err);
}

const char *keys_left_to_ssh(const struct ssh_keys *keys)
{
    return keys ? keys->left_to_ssh : NULL;
}
