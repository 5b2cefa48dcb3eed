/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/parts.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/strv.h"
#include "io/module_open.h"
#include "transport/boot/agent_image.h"
#include "transport/exec/words.h"
#include "transport/ssh/config.h"
#include "transport/ssh_module/ssh_module.h"
#include "transport/transports.h"

/*
 * The words of the `ssh` program's template (for the exec transport), for a host that libssh2
 * cannot do. Pure.
 */

#define WORD_MAX 8192
#define ALIVE_INTERVAL_MS 5000 /* as in the template */

/* A word of a template in which nothing is replaced. */
static int add_literal(struct strv *words, const char *prefix, const char *text, struct error *err)
{
    struct buf word AUTO_BUF = BUF_INIT(WORD_MAX);
    int rc = buf_puts(&word, prefix);
    for (const char *at = text; *at != '\0' && rc == 0; at++)
        rc = buf_puts(&word, at[0] == '%' ? "%%" : (char[]){at[0], '\0'});
    if (rc < 0)
        return error_set(err, "a path for ssh is longer than %d bytes", WORD_MAX);
    strv_add(words, buf_text(&word));
    return 0;
}

/* ssh takes the first value that it finds for each option, so ours go before the template's. */
int ssh_program_words(const struct ssh_program *program, struct strv *words, struct error *err)
{
    struct strv template AUTO_STRV = STRV_INIT;
    if (exec_template_parse(EXEC_SSH_TEMPLATE, &template, err) < 0)
        return -1;
    strv_add(words, template.items[0]);
    strv_add(words, "-oClearAllForwardings=yes");
    strv_add(words, "-oRemoteCommand=none");
    strv_add(words, "-oControlPath=none"); /* one connection a host, and it ends with us */
    if (program->config_file != NULL) {
        strv_add(words, "-F");
        if (add_literal(words, "", program->config_file, err) < 0)
            return -1;
    }
    if (program->identity != NULL) {
        strv_add(words, "-i");
        if (add_literal(words, "", program->identity, err) < 0)
            return -1;
    }
    if (program->user != NULL) {
        strv_add(words, "-l");
        strv_add(words, program->user);
    }
    if (program->port > 0)
        strv_printf(words, "-p%d", program->port);
    if (program->check != NULL)
        strv_printf(words, "-oStrictHostKeyChecking=%s", program->check);
    if (program->silence_ms > 0)
        strv_printf(words, "-oServerAliveCountMax=%d",
                    (int)((program->silence_ms + ALIVE_INTERVAL_MS - 1) / ALIVE_INTERVAL_MS));
    strv_copy(words, strv_items(&template) + 1);
    return 0;
}

/*
 * What the job says about SSH, and what follows for one host together with OpenSSH's configuration
 * of it. Pure.
 */

#define SILENCE_DEFAULT_MS 120000 /* when the job does not say when a node is given up */

enum ssh_host_policy ssh_settings_policy(const struct ssh_settings *settings,
                                         const struct ssh_config *config)
{
    return settings->strict ? SSH_HOST_STRICT : config->policy;
}

char *ssh_settings_strict_remedy(const struct ssh_settings *settings,
                                 const struct ssh_config *config)
{
    const char *file = settings->config_file != NULL
                           ? settings->config_file
                           : "your ssh configuration (~/.ssh/config or /etc/ssh/ssh_config)";
    bool configured = config->policy == SSH_HOST_STRICT;
    if (settings->strict && !configured)
        return mem_strdup("connect once without --ssh-strict");
    return mem_printf("change StrictHostKeyChecking yes to accept-new in %s%s", file,
                      settings->strict ? " and leave out --ssh-strict" : "");
}

int64_t ssh_settings_silence_ms(const struct ssh_settings *settings)
{
    return settings->room->silence_ms > 0 ? settings->room->silence_ms : SILENCE_DEFAULT_MS;
}

struct ssh_wanted ssh_settings_wanted(const struct ssh_settings *settings,
                                      const struct transport_target *host)
{
    bool own_identity = host->identity != NULL;
    return (struct ssh_wanted){.host = host->address != NULL ? host->address : host->host,
                               .user = host->user != NULL ? host->user : settings->user,
                               .identity = own_identity ? host->identity : settings->identity,
                               .identity_by = own_identity ? "identity in the host list"
                                                           : "--ssh-identity-file",
                               .port = host->port > 0 ? host->port : settings->port};
}

struct ssh_program ssh_settings_program(const struct ssh_settings *settings,
                                        const struct ssh_config *config,
                                        const struct ssh_wanted *wanted)
{
    static const char *const checks[] = {
        [SSH_HOST_ACCEPT_NEW] = NULL, [SSH_HOST_STRICT] = "yes", [SSH_HOST_ANY] = "no"};
    return (struct ssh_program){.config_file = settings->config_file,
                                .identity = wanted->identity,
                                .user = wanted->user,
                                .port = wanted->port,
                                .check = checks[ssh_settings_policy(settings, config)],
                                .silence_ms = ssh_settings_silence_ms(settings)};
}

/*
 * The keys of a job: one set for each distinct list of files and agent, loaded once for all hosts.
 * Encrypted keys are left out, unless the user's ssh-agent has them: the user is never asked.
 */

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

/* All is borrowed. */
static struct ssh_identities *ssh_identities_create(const struct ssh_module *module)
{
    struct ssh_identities *identities = mem_alloc(sizeof(*identities));
    *identities = (struct ssh_identities){.module = module};
    return identities;
}

static void ssh_identities_destroy(struct ssh_identities *identities)
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

/* What is shared. */

static void idle_fire(void *context)
{
    const struct ssh_shared *shared = context;
    agent_image_hash(shared->settings->room->image);
}

struct ssh_shared *ssh_shared_create(const struct ssh_settings *settings,
                                     void (*turn)(void *context), void *context)
{
    struct ssh_shared *shared = mem_alloc(sizeof(*shared));
    *shared = (struct ssh_shared){
        .settings = settings,
        .loop = settings->room->loop,
        .window = ssh_window_create(settings->window),
        .query_settings = {.room = settings->room, .config_file = settings->config_file},
    };
    shared->queries = ssh_queries_create(&shared->query_settings);
    shared->turn = loop_timer_create(shared->loop, turn, context);
    shared->idle = loop_timer_create(shared->loop, idle_fire, shared);
    return shared;
}

void ssh_shared_destroy(struct ssh_shared *shared)
{
    if (shared == NULL)
        return;
    loop_timer_destroy(shared->turn);
    loop_timer_destroy(shared->idle);
    ssh_window_destroy(shared->window);
    ssh_queries_destroy(shared->queries);
    resolver_destroy(shared->resolver);
    ssh_identities_destroy(shared->identities);
    if (shared->module != NULL)
        shared->module->known_files_destroy(shared->known_files);
    free(shared->why_not);
    free(shared);
}

void ssh_shared_schedule(struct ssh_shared *shared)
{
    loop_timer_set(shared->turn, 0);
}

void ssh_shared_open_resolver(struct ssh_shared *shared)
{
    struct error err = ERROR_INIT;
    if (shared->resolver != NULL || shared->why_not != NULL)
        return;
    shared->resolver = resolver_create(shared->loop, NULL, &err);
    if (shared->resolver == NULL)
        shared->why_not = mem_strdup(err.text);
}

const char *ssh_shared_open_module(struct ssh_shared *shared)
{
    struct error err = ERROR_INIT;
    if (shared->module != NULL || shared->why_not != NULL)
        return shared->why_not;
    shared->module = module_open(shared->settings->module_path, SSH_MODULE_KIND, &err);
    if (shared->module == NULL) {
        shared->why_not = mem_strdup(err.text);
        return shared->why_not;
    }
    shared->known_files = shared->module->known_files_create();
    shared->identities = ssh_identities_create(shared->module);
    return NULL;
}

void ssh_shared_idle(struct ssh_shared *shared)
{
    loop_timer_set(shared->idle, 0);
}
