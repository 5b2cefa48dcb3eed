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

/* An option whose value is a word of a template in which nothing is replaced; NULL: none. */
static int add_option(struct strv *words, const char *option, const char *value, struct error *err)
{
    struct buf word AUTO_BUF = BUF_INIT(WORD_MAX);
    int rc = 0;
    if (value == NULL)
        return 0;
    for (const char *at = value; *at != '\0' && rc == 0; at++)
        rc = buf_puts(&word, at[0] == '%' ? "%%" : (char[]){at[0], '\0'});
    if (rc < 0)
        return error_set(err, "a path for ssh is longer than %d bytes", WORD_MAX);
    strv_add(words, option);
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
    if (add_option(words, "-F", program->config_file, err) < 0 ||
        add_option(words, "-i", program->identity, err) < 0 ||
        add_option(words, "-l", program->user, err) < 0)
        return -1;
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

/* What the job says about SSH, and what follows for one host. Pure. */

#define SILENCE_DEFAULT_MS 120000 /* when the job does not say when a node is given up */

enum ssh_host_policy ssh_settings_policy(const struct ssh_settings *settings,
                                         const struct ssh_config *config)
{
    return settings->strict ? SSH_HOST_STRICT : config->policy;
}

int64_t ssh_settings_silence_ms(const struct ssh_settings *settings)
{
    return settings->room->silence_ms > 0 ? settings->room->silence_ms : SILENCE_DEFAULT_MS;
}

/*
 * The keys of a job: one set for each distinct list of files and agent, loaded once for all hosts.
 * Encrypted keys are left out, unless the user's ssh-agent has them: the user is never asked.
 */

#define KEY_TEXT_MAX ((size_t)64 << 10)

static char *name_of_set(const struct ssh_config *config)
{
    struct buf name AUTO_BUF = BUF_INIT(KEY_TEXT_MAX);
    buf_printf(&name, "%d\n%s", config->identities_only,
               config->agent_socket == NULL ? "" : config->agent_socket);
    for (size_t i = 0; i < config->identities.count; i++)
        buf_printf(&name, "\n%s", config->identities.items[i]);
    return buf_take(&name);
}

struct ssh_key_set *ssh_shared_keys(struct ssh_transport *ssh, const struct ssh_config *config)
{
    char *name AUTO_FREE = name_of_set(config);
    struct ssh_key_set *set = ssh->key_sets;
    while (set != NULL && strcmp(set->name, name) != 0)
        set = set->next;
    if (set != NULL)
        return set;
    const struct ssh_keys_config keys = {.files = strv_items(&config->identities),
                                         .agent_socket = config->agent_socket,
                                         .identities_only = config->identities_only};
    struct error err = ERROR_INIT;
    set = MEM_NEW((struct ssh_key_set){.next = ssh->key_sets, .name = mem_strdup(name)});
    set->keys = ssh->module->keys_create(&keys, &set->notes, &err);
    if (set->keys == NULL)
        set->why = mem_strdup(err.text);
    ssh->key_sets = set;
    return set;
}

void ssh_shared_forget_keys(struct ssh_transport *ssh)
{
    while (ssh->key_sets != NULL) {
        struct ssh_key_set *set = ssh->key_sets;
        ssh->key_sets = set->next;
        if (set->keys != NULL)
            ssh->module->keys_destroy(set->keys);
        strv_destroy(&set->notes);
        free(set->name);
        free(set->why);
        free(set);
    }
}

/* What is opened once. */

void ssh_shared_open_resolver(struct ssh_transport *ssh)
{
    struct error err = ERROR_INIT;
    if (ssh->resolver != NULL || ssh->why_not != NULL)
        return;
    ssh->resolver = resolver_create(ssh->loop, NULL, &err);
    if (ssh->resolver == NULL)
        ssh->why_not = mem_strdup(err.text);
}

const char *ssh_shared_open_module(struct ssh_transport *ssh)
{
    struct error err = ERROR_INIT;
    if (ssh->module != NULL || ssh->why_not != NULL)
        return ssh->why_not;
    ssh->module = module_open(ssh->settings->module_path, SSH_MODULE_KIND, &err);
    if (ssh->module == NULL)
        ssh->why_not = mem_strdup(err.text);
    else
        ssh->known_files = ssh->module->known_files_create();
    return ssh->why_not;
}
