/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/key.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "transport/ssh_module/keys_test.h"
#include "transport/ssh_module/ssh_module.h"

/*
 * A client of ssh-agent (draft-miller-ssh-agent): lists its keys and has it sign. libssh2's own
 * client cannot ask for SHA-2 signatures and waits for ever.
 *
 * One connection serves all sessions. Calls block for at most SSH_AGENT_WAIT_MS. An agent that was
 * silent for that long once (an open dialogue, a dead forwarding) is not asked again.
 */

#define MESSAGE_MAX (256 * 1024)
#define AGENT_KEYS_MAX 1024

enum {
    MESSAGE_FAILURE = 5,
    MESSAGE_REQUEST_IDENTITIES = 11,
    MESSAGE_IDENTITIES = 12,
    MESSAGE_SIGN_REQUEST = 13,
    MESSAGE_SIGNATURE = 14,
};

enum { SIGN_RSA_SHA2_512 = 4 };

struct key_agent {
    char *path;
    int fd; /* -1: to be connected again */
    bool silent;
};

static int connect_to(struct key_agent *agent, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(agent->path) >= sizeof address.sun_path)
        return error_set(err, "key agent: the path of its socket is too long: %s", agent->path);
    memcpy(address.sun_path, agent->path, strlen(agent->path));
    agent->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (agent->fd < 0 ||
        connect(agent->fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        int cause = errno;

        fd_close(&agent->fd);
        return error_errno(err, cause, "no key agent at %s", agent->path);
    }
    return 0;
}

struct key_agent *key_agent_create(const char *socket_path, struct error *err)
{
    struct key_agent *agent = mem_alloc(sizeof *agent);

    agent->path = mem_strdup(socket_path);
    agent->fd = -1;
    if (connect_to(agent, err) < 0) {
        key_agent_destroy(agent);
        return NULL;
    }
    return agent;
}

void key_agent_destroy(struct key_agent *agent)
{
    if (!agent)
        return;
    fd_close(&agent->fd);
    mem_free_at(&agent->path);
    mem_free_at(&agent);
}

/* 0: ready; -1: not within the deadline. */
static int wait_for(struct key_agent *agent, short events, int64_t deadline, struct error *err)
{
    for (;;) {
        struct pollfd ready = {.fd = agent->fd, .events = events};
        int64_t left = deadline - clock_mono_ms();
        int rc = left > 0 ? poll(&ready, 1, (int)left) : 0;

        if (rc > 0)
            return 0;
        if (rc == 0) {
            agent->silent = true;
            return error_set(err,
                             "the key agent at %s did not answer within %d s: does it ask "
                             "for a confirmation?",
                             agent->path, SSH_AGENT_WAIT_MS / 1000);
        }
        if (errno != EINTR)
            return error_errno(err, errno, "key agent: poll");
    }
}

static int send_all(struct key_agent *agent, const struct buf *message, int64_t deadline,
                    struct error *err)
{
    const char *bytes = buf_text(message);
    size_t sent = 0;

    while (sent < message->length) {
        ssize_t n = send(agent->fd, bytes + sent, message->length - sent, MSG_NOSIGNAL);

        if (n > 0)
            sent += (size_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            return error_errno(err, errno, "the key agent at %s", agent->path);
        else if (wait_for(agent, POLLOUT, deadline, err) < 0)
            return -1;
    }
    return 0;
}

static int receive(struct key_agent *agent, size_t length, struct buf *out, int64_t deadline,
                   struct error *err)
{
    while (length > 0) {
        char *room = buf_reserve(out, length);
        ssize_t n;

        if (!room)
            return error_set(err, "the key agent at %s sent a message that is too long",
                             agent->path);
        n = recv(agent->fd, room, length, 0);
        if (n > 0) {
            buf_commit(out, (size_t)n);
            length -= (size_t)n;
        } else if (n == 0) {
            return error_set(err, "the key agent at %s closed the connection", agent->path);
        } else if (errno != EAGAIN && errno != EINTR) {
            return error_errno(err, errno, "the key agent at %s", agent->path);
        } else if (wait_for(agent, POLLIN, deadline, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int exchange_once(struct key_agent *agent, const struct buf *request, struct buf *reply,
                         int64_t deadline, struct error *err)
{
    struct fields fields;
    uint32_t length;

    if (agent->fd < 0 && connect_to(agent, err) < 0)
        return -1;
    if (send_all(agent, request, deadline, err) < 0 || receive(agent, 4, reply, deadline, err) < 0)
        return -1;
    fields = fields_of(buf_text(reply), reply->length);
    length = fields_u32(&fields);
    if (length == 0 || length > MESSAGE_MAX)
        return error_set(err, "the key agent at %s speaks another protocol", agent->path);
    buf_clear(reply);
    return receive(agent, length, reply, deadline, err);
}

/* A connection that broke since the last request is made again, once. A half-used one is closed,
 * for its answer may still come. */
static int exchange(struct key_agent *agent, const struct buf *request, struct buf *reply,
                    struct error *err)
{
    int64_t deadline = clock_mono_ms() + SSH_AGENT_WAIT_MS;

    for (int attempt = 0;; attempt++) {
        if (agent->silent)
            return error_set(err, "the key agent at %s did not answer before", agent->path);
        buf_clear(reply);
        if (exchange_once(agent, request, reply, deadline, err) == 0)
            return 0;
        fd_close(&agent->fd);
        if (attempt > 0 || agent->silent)
            return -1;
    }
}

int key_agent_list(struct key_agent *agent,
                   void (*each)(void *context, struct byte_view blob, const char *comment),
                   void *context, struct error *err)
{
    static const char message[] = {0, 0, 0, 1, MESSAGE_REQUEST_IDENTITIES};
    AUTO_BUF struct buf request = BUF_INIT(16), reply = BUF_INIT(MESSAGE_MAX + 4);
    struct fields fields;
    uint32_t count;
    uint8_t type;

    (void)buf_append(&request, message, sizeof message);
    if (exchange(agent, &request, &reply, err) < 0)
        return -1;
    fields = fields_of(buf_text(&reply), reply.length);
    type = fields_u8(&fields);
    count = fields_u32(&fields);
    if (type != MESSAGE_IDENTITIES || fields.bad)
        return error_set(err, "the key agent at %s does not list its keys", agent->path);
    for (uint32_t i = 0; i < count && i < AGENT_KEYS_MAX; i++) {
        struct byte_view blob = fields_string(&fields), text = fields_string(&fields);
        AUTO_FREE char *comment = NULL;

        if (fields.bad)
            return error_set(err, "the key agent at %s sent a damaged list", agent->path);
        comment = mem_strndup((const char *)text.at, text.length < 200 ? text.length : 200);
        each(context, blob, comment);
    }
    return 0;
}

static int put_sign_request(struct buf *request, const struct key *key, struct byte_view data)
{
    size_t length = 1 + 4 + key->blob.length + 4 + data.length + 4;
    uint32_t flags = key_is_rsa(key) ? SIGN_RSA_SHA2_512 : 0;

    if (fields_put_u32(request, (uint32_t)length) < 0 ||
        buf_putc(request, MESSAGE_SIGN_REQUEST) < 0 ||
        fields_put_string(request, buf_text(&key->blob), key->blob.length) < 0 ||
        fields_put_string(request, data.at, data.length) < 0)
        return -1;
    return fields_put_u32(request, flags);
}

int key_agent_sign(struct key_agent *agent, const struct key *key, struct byte_view data,
                   struct buf *signature, struct error *err)
{
    AUTO_BUF struct buf request = BUF_INIT(MESSAGE_MAX), reply = BUF_INIT(MESSAGE_MAX + 4);
    struct fields fields, inside;
    struct byte_view outer, name, bare;
    uint8_t type;

    if (put_sign_request(&request, key, data) < 0)
        return error_set(err, "the data for the key agent to sign is too large");
    if (exchange(agent, &request, &reply, err) < 0)
        return -1;
    fields = fields_of(buf_text(&reply), reply.length);
    type = fields_u8(&fields);
    outer = fields_string(&fields);
    inside = fields_of(outer.at, outer.length);
    name = fields_string(&inside);
    bare = fields_string(&inside);
    if (type != MESSAGE_SIGNATURE)
        return error_set(err, "the key agent refuses to sign with %s: is it locked?", key->origin);
    if (fields.bad || inside.bad)
        return error_set(err, "the key agent sent a damaged signature");
    if (!view_is(name, key->type->signature))
        return error_set(err, "the key agent signs with %.*s where %s is needed",
                         (int)(name.length < 64 ? name.length : 64), (const char *)name.at,
                         key->type->signature);
    return buf_append(signature, bare.at, bare.length);
}

/* The keys: of the agent, and of files. */

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
