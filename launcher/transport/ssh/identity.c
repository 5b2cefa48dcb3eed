/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "transport/ssh/agent.h"

#define PASSPHRASE_FILE_MAX 4096
#define KEY_TEXT_MAX ((size_t)64 << 10)

struct set {
    struct set *next;
    struct ssh_identities *identities;
    char *key; /* of this set among the others */
    struct strv files, notes;
    char *agent_socket;
    bool identities_only;
    struct ssh_agent *agent; /* our own */
    bool loaded, notes_told;
    struct ssh_keys *keys;
    char *why;
};

struct ssh_identity_request {
    struct ssh_identity_request *next;
    struct set *set;
    struct loop_timer *timer; /* tells from the loop */
    void (*done)(void *context, const struct ssh_identity_answer *answer);
    void *context;
};

struct ssh_identities {
    const struct transport_room *room;
    const struct ssh_module *module;
    const char *passphrase_file; /* NULL: none that can be read */
    char *file_problem;          /* why the one that was named cannot be; NULL */
    struct set *sets;
    struct ssh_identity_request *requests;
};

/* It is read more than once, by ssh-add's helper too, and reading it may not wait for somebody: so
 * a pipe will not do. */
static char *passphrase_problem(const char *path)
{
    struct stat info;
    if (stat(path, &info) < 0 || (S_ISREG(info.st_mode) && access(path, R_OK) < 0))
        return mem_printf("--ssh-passphrase-file %s cannot be read: %s", path,
                          strerrordesc_np(errno));
    if (!S_ISREG(info.st_mode))
        return mem_printf("--ssh-passphrase-file %s is not used: it must be a plain file", path);
    return NULL;
}

struct ssh_identities *ssh_identities_create(const struct transport_room *room,
                                             const struct ssh_module *module,
                                             const char *passphrase_file)
{
    struct ssh_identities *identities = mem_alloc(sizeof(*identities));
    *identities =
        (struct ssh_identities){.room = room, .module = module, .passphrase_file = passphrase_file};
    if (passphrase_file != NULL)
        identities->file_problem = passphrase_problem(passphrase_file);
    if (identities->file_problem != NULL)
        identities->passphrase_file = NULL;
    return identities;
}

void ssh_identities_destroy(struct ssh_identities *identities)
{
    if (identities == NULL)
        return;
    while (identities->sets != NULL) {
        struct set *set = identities->sets;
        identities->sets = set->next;
        if (set->keys != NULL)
            identities->module->keys_destroy(set->keys);
        ssh_agent_destroy(set->agent);
        strv_destroy(&set->files);
        strv_destroy(&set->notes);
        free(set->agent_socket);
        free(set->key);
        free(set->why);
        free(set);
    }
    free(identities->file_problem);
    free(identities);
}

/* The first line of the passphrase file; the caller wipes and frees it. NULL: there is none. */
static char *read_passphrase(struct set *set)
{
    const char *path = set->identities->passphrase_file;
    struct error err = ERROR_INIT;
    struct buf bytes AUTO_BUF = BUF_INIT(PASSPHRASE_FILE_MAX);
    char *passphrase = NULL;
    if (path == NULL)
        return NULL;
    if (fd_read_file(path, &bytes, &err) < 0)
        strv_add(&set->notes, err.text);
    else
        passphrase = mem_strndup(buf_text(&bytes), strcspn(buf_text(&bytes), "\r\n"));
    if (bytes.bytes != NULL)
        explicit_bzero(bytes.bytes, bytes.start + bytes.length);
    return passphrase;
}

static void load(struct set *set)
{
    const char *own = set->agent == NULL ? NULL : ssh_agent_socket(set->agent);
    char *passphrase = read_passphrase(set);
    const struct ssh_keys_config config = {.files = strv_items(&set->files),
                                           .passphrase = passphrase,
                                           .agent_socket = own != NULL ? own : set->agent_socket,
                                           .identities_only = set->identities_only};
    struct error err = ERROR_INIT;
    set->keys = set->identities->module->keys_create(&config, &set->notes, &err);
    const char *problem = set->identities->file_problem;
    if (problem != NULL)
        strv_add(&set->notes, problem);
    if (set->keys == NULL)
        set->why = mem_printf("%s%s%s", err.text, problem != NULL ? "; " : "",
                              problem != NULL ? problem : "");
    if (passphrase != NULL)
        explicit_bzero(passphrase, strlen(passphrase));
    free(passphrase);
    set->loaded = true;
    for (struct ssh_identity_request *at = set->identities->requests; at != NULL; at = at->next) {
        if (at->set == set)
            loop_timer_set(at->timer, 0);
    }
}

static void agent_done(void *context, const char *why)
{
    struct set *set = context;
    if (why != NULL)
        strv_add(&set->notes, why);
    load(set);
}

static void load_or_unlock(struct set *set)
{
    const struct ssh_identities *identities = set->identities;
    struct strv locked AUTO_STRV = STRV_INIT;
    for (size_t i = 0; i < set->files.count && identities->passphrase_file != NULL; i++) {
        if (identities->module->key_needs_agent(set->files.items[i]))
            strv_add(&locked, set->files.items[i]);
    }
    if (locked.count == 0) {
        load(set);
        return;
    }
    if (set->agent_socket != NULL)
        strv_printf(&set->notes, "encrypted keys are unlocked in an ssh-agent of this job's own; "
                                 "those of your ssh-agent are not used");
    set->agent = ssh_agent_start(identities->room, strv_items(&locked), identities->passphrase_file,
                                 agent_done, set);
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

static struct set *set_for(struct ssh_identities *identities, const struct ssh_config *config)
{
    char *key = set_key(config);
    struct set *set = identities->sets;
    while (set != NULL && strcmp(set->key, key) != 0)
        set = set->next;
    if (set != NULL) {
        free(key);
        return set;
    }
    set = mem_alloc(sizeof(*set));
    *set = (struct set){.next = identities->sets,
                        .identities = identities,
                        .key = key,
                        .agent_socket = mem_strdup(config->agent_socket),
                        .identities_only = config->identities_only};
    strv_copy(&set->files, strv_items(&config->identities));
    identities->sets = set;
    load_or_unlock(set);
    return set;
}

static void request_fire(void *context)
{
    struct ssh_identity_request *request = context;
    struct set *set = request->set;
    const struct ssh_identity_answer answer = {
        .keys = set->keys,
        .why = set->why,
        .notes = set->notes_told ? NULL : &set->notes,
        .private_agent = set->agent == NULL ? NULL : ssh_agent_socket(set->agent)};
    set->notes_told = true;
    request->done(request->context, &answer);
}

struct ssh_identity_request *
ssh_identity_ask(struct ssh_identities *identities, const struct ssh_config *config,
                 void (*done)(void *context, const struct ssh_identity_answer *answer),
                 void *context)
{
    struct ssh_identity_request *request = mem_alloc(sizeof(*request));
    request->set = set_for(identities, config);
    request->done = done;
    request->context = context;
    request->timer = loop_timer_create(identities->room->loop, request_fire, request);
    request->next = identities->requests;
    identities->requests = request;
    if (request->set->loaded)
        loop_timer_set(request->timer, 0);
    return request;
}

void ssh_identity_request_destroy(struct ssh_identity_request *request)
{
    if (request == NULL)
        return;
    struct ssh_identity_request **at = &request->set->identities->requests;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    loop_timer_destroy(request->timer);
    free(request);
}
