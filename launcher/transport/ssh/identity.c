/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/identity.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define KEY_TEXT_MAX ((size_t)64 << 10)

struct key_set {
    struct key_set *next;
    char *key; /* of this set among the others */
    struct strv notes;
    bool notes_told;
    struct ssh_keys *keys;
    char *why;
};

struct ssh_identities {
    const struct ssh_module *module;
    struct key_set *sets;
};

struct ssh_identities *ssh_identities_create(const struct ssh_module *module)
{
    struct ssh_identities *identities = mem_alloc(sizeof(*identities));
    *identities = (struct ssh_identities){.module = module};
    return identities;
}

void ssh_identities_destroy(struct ssh_identities *identities)
{
    if (identities == NULL)
        return;
    while (identities->sets != NULL) {
        struct key_set *set = identities->sets;
        identities->sets = set->next;
        if (set->keys != NULL)
            identities->module->keys_destroy(set->keys);
        strv_destroy(&set->notes);
        free(set->key);
        free(set->why);
        free(set);
    }
    free(identities);
}

static char *set_key(const struct ssh_config *config)
{
    struct buf key AUTO_BUF = BUF_INIT(KEY_TEXT_MAX);
    buf_printf(&key, "%d\n%s", config->identities_only,
               config->agent_socket == NULL ? "" : config->agent_socket);
    for (size_t i = 0; i < config->identities.count; i++)
        buf_printf(&key, "\n%s", config->identities.items[i]);
    return buf_take(&key);
}

/* Takes `key`. */
static struct key_set *load(struct ssh_identities *identities, const struct ssh_config *config,
                            char *key)
{
    const struct ssh_keys_config keys = {.files = strv_items(&config->identities),
                                         .agent_socket = config->agent_socket,
                                         .identities_only = config->identities_only};
    struct error err = ERROR_INIT;
    struct key_set *set = mem_alloc(sizeof(*set));
    *set = (struct key_set){.next = identities->sets, .key = key};
    set->keys = identities->module->keys_create(&keys, &set->notes, &err);
    if (set->keys == NULL)
        set->why = mem_strdup(err.text);
    identities->sets = set;
    return set;
}

struct ssh_identity ssh_identities_find(struct ssh_identities *identities,
                                        const struct ssh_config *config)
{
    char *key AUTO_FREE = set_key(config);
    struct key_set *set = identities->sets;
    while (set != NULL && strcmp(set->key, key) != 0)
        set = set->next;
    if (set == NULL) {
        set = load(identities, config, key);
        key = NULL;
    }
    const struct ssh_identity identity = {
        .keys = set->keys, .why = set->why, .notes = set->notes_told ? NULL : &set->notes};
    set->notes_told = true;
    return identity;
}
