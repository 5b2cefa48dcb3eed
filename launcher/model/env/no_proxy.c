/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/no_proxy.h"

#include <string.h>
#include <strings.h>

#include "model/env/list.h"

static const char *const spellings[] = {"no_proxy", "NO_PROXY"};

/* http_proxy and its kin, and what the user already says about them. */
static bool is_proxy_variable(const char *pair)
{
    static const char *const names[] = {
        "http_proxy=", "https_proxy=", "all_proxy=", "grpc_proxy=", "no_proxy="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncasecmp(pair, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

void no_proxy_put(struct no_proxy *out, const char *rendezvous, const char *master,
                  struct env_table *table, struct strv *owned)
{
    size_t count = 0;
    *out = (struct no_proxy){.has_proxy = false};
    if (rendezvous != NULL)
        out->addresses[count++] = rendezvous;
    if (master != NULL)
        out->addresses[count++] = master;
    for (size_t i = 0; i < table->count; i++)
        out->has_proxy =
            out->has_proxy || (table->vars[i] != NULL && is_proxy_variable(table->vars[i]));
    const char *values[2];
    char *pairs[2];
    for (size_t i = 0; i < 2; i++)
        values[i] = env_table_value(table, spellings[i]);
    for (size_t i = 0; i < 2; i++) {
        /* a reader of one spelling must still find what the user wrote in the other */
        const char *value = values[i] != NULL ? values[i] : values[1 - i];
        pairs[i] = env_list_with(spellings[i], value, out->addresses);
    }
    for (size_t i = 0; i < 2; i++) {
        if (pairs[i] != NULL) {
            strv_add_take(owned, pairs[i]);
            env_table_put(table, pairs[i]);
        }
        out->slots[i] = env_table_slot(table, spellings[i]);
    }
}

void no_proxy_user(const struct no_proxy *no_proxy, const struct env_table *table,
                   const struct strv *user, char **items, struct strv *owned)
{
    bool given = false, has_proxy = no_proxy->has_proxy;
    for (size_t i = 0; user != NULL && i < user->count; i++) {
        size_t slot = env_table_find(table, user->items[i]);
        given |= slot == no_proxy->slots[0] || slot == no_proxy->slots[1];
        has_proxy = has_proxy || is_proxy_variable(user->items[i]);
    }
    for (size_t i = 0; given && i < 2; i++) {
        const char *value = strv_env_get(user, spellings[i]);
        char *pair = value == NULL ? NULL : env_list_with(spellings[i], value, no_proxy->addresses);
        if (pair == NULL)
            continue;
        strv_add_take(owned, pair);
        items[no_proxy->slots[i]] = pair;
    }
    if (!has_proxy)
        items[no_proxy->slots[0]] = items[no_proxy->slots[1]] = NULL;
}
