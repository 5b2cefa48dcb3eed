/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/config.h"

#include <errno.h>
#include <glob.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/program.h"

#define CONFIG_FILE_MAX ((size_t)1 << 20)
#define SYSTEM_CONFIG "/etc/ssh/ssh_config"
#define CONFIG_TEXT_MAX ((size_t)16 << 20) /* of all files */

struct answer {
    LIST_ENTRY(answer) all;
    struct ssh_queries *queries;
    char *host, *user, *identity; /* as in struct ssh_wanted */
    int port;
    unsigned edition;    /* of the files, which say the same of other hosts; 0: they do not */
    struct answer *like; /* the first host of which they say the same; NULL: it is that itself */
    struct program *program; /* `ssh -G`, still running */
    bool known;
    char *why; /* NULL: `config` is good */
    struct ssh_config config;
};

struct ssh_question {
    LIST_ENTRY(ssh_question) all;
    struct answer *answer;
    struct loop_timer *timer; /* tells from the loop */
    void (*done)(void *context, const struct ssh_config *config, const char *why);
    void *context;
};

struct ssh_queries {
    const struct ssh_settings *settings;
    struct ssh_config_place place;
    char *home, *user;
    struct ssh_config_sight sight; /* of the files, when they were looked at last */
    struct buf text;               /* theirs */
    unsigned edition; /* of the text, from 1 on: an answer holds for others by the same one only */
    LIST_HEAD(, answer) answers;
    LIST_HEAD(, ssh_question) questions;
};

static const char *variable(const char *name)
{
    return getenv(name);
}

struct ssh_queries *ssh_queries_create(const struct ssh_settings *settings)
{
    struct ssh_queries *queries = mem_alloc(sizeof(*queries));
    queries->settings = settings;
    queries->edition = 1;
    const struct passwd *me = getpwuid(getuid()); /* as OpenSSH, which does not ask $HOME */
    const char *home = getenv("HOME"), *user = getenv("USER");
    queries->home = mem_strdup(me != NULL ? me->pw_dir : home);
    queries->user = mem_strdup(me != NULL ? me->pw_name : user != NULL ? user : "root");
    queries->place = (struct ssh_config_place){
        .home = queries->home, .user = queries->user, .variable = variable};
    buf_init(&queries->text, CONFIG_TEXT_MAX);
    return queries;
}

void ssh_queries_destroy(struct ssh_queries *queries)
{
    if (queries == NULL)
        return;
    while (!LIST_EMPTY(&queries->answers)) {
        struct answer *answer = LIST_FIRST(&queries->answers);
        LIST_REMOVE(answer, all);
        program_cancel(answer->program);
        ssh_config_destroy(&answer->config);
        free(answer->host);
        free(answer->user);
        free(answer->identity);
        free(answer->why);
        free(answer);
    }
    buf_destroy(&queries->text);
    free(queries->home);
    free(queries->user);
    free(queries);
}

/* True: the file is there. One that cannot be read is OpenSSH's to complain about. */
static bool look_at_file(const char *path, struct ssh_config_sight *sight, struct buf *text)
{
    struct buf bytes AUTO_BUF = BUF_INIT(CONFIG_FILE_MAX);
    if (fd_read_file(path, &bytes, NULL) < 0) {
        bool is_there = errno != ENOENT && errno != ENOTDIR;
        sight->matters |= is_there;
        sight->by_host |= is_there;
        return is_there;
    }
    ssh_config_look(buf_text(&bytes), bytes.length, sight);
    bool whole = buf_append(text, buf_text(&bytes), bytes.length) == 0;
    sight->by_host |= !whole || buf_putc(text, '\0') < 0;
    return true;
}

static void look_at_parts(struct ssh_config_sight *sight, struct buf *text)
{
    glob_t found;
    if (glob(SSH_CONFIG_PARTS, 0, NULL, &found) != 0)
        return;
    struct ssh_config_sight parts = {.hash_names = sight->hash_names};
    for (size_t i = 0; i < found.gl_pathc; i++)
        look_at_file(found.gl_pathv[i], &parts, text);
    globfree(&found);
    sight->by_host |= parts.by_host || parts.includes_parts;
    sight->matters |= parts.matters || parts.includes_parts;
    sight->hash_names = parts.hash_names;
}

/* Looks at the files, each time, since a job may last for days. True: they have changed since the
 * last look. */
static bool look(struct ssh_queries *queries)
{
    const char *config_file = queries->settings->config_file;
    struct ssh_config_sight sight = {.matters = config_file != NULL};
    struct buf text AUTO_BUF = BUF_INIT(CONFIG_TEXT_MAX);
    if (config_file != NULL) { /* the system's is not read then */
        look_at_file(config_file, &sight, &text);
    } else {
        char *own AUTO_FREE =
            mem_printf("%s/.ssh/config", queries->home == NULL ? "" : queries->home);
        sight.matters = look_at_file(own, &sight, &text);
        look_at_file(SYSTEM_CONFIG, &sight, &text);
    }
    if (sight.includes_parts)
        look_at_parts(&sight, &text);
    queries->sight = sight;
    if (text.length == queries->text.length &&
        memcmp(buf_text(&text), buf_text(&queries->text), text.length) == 0)
        return false;
    const struct buf before = queries->text;
    queries->text = text;
    text = before;
    queries->edition++;
    return true;
}

static void question_fire(void *context)
{
    struct ssh_question *question = context;
    const struct answer *answer = question->answer;
    question->done(question->context, answer->why == NULL ? &answer->config : NULL, answer->why);
}

static void run_query(struct answer *answer);

/* Whether what was said of the first one holds for those like it. A host that the others are
 * reached through is not reached through itself. */
static bool is_for_all(const struct answer *first)
{
    return first->why == NULL && first->config.proxy_jump == NULL &&
           strcmp(first->config.host_name, first->host) == 0;
}

/* The first one like it is known. If the files have changed, ssh may have read others than we. */
static void follow(struct answer *answer)
{
    if (!is_for_all(answer->like) || look(answer->queries)) {
        run_query(answer);
        return;
    }
    ssh_config_copy(&answer->config, &answer->like->config, answer->host);
    answer->known = true;
}

static void tell(struct answer *answer)
{
    struct ssh_question *at;
    LIST_FOREACH (at, &answer->queries->questions, all) {
        if (at->answer == answer)
            loop_timer_set(at->timer, 0);
    }
}

static void answer_known(struct answer *answer, char *why)
{
    answer->known = true;
    answer->why = why;
    tell(answer);
    struct answer *at;
    LIST_FOREACH (at, &answer->queries->answers, all) {
        if (at->like == answer && !at->known && at->program == NULL)
            follow(at);
        if (at->like == answer && at->known)
            tell(at);
    }
}

static void query_done(void *context, const struct program_result *result)
{
    struct answer *answer = context;
    struct error err = ERROR_INIT;
    char *why = NULL;
    answer->program = NULL;
    if (result->why != NULL && result->status < 0)
        why = mem_printf("cannot read the ssh configuration: %s", result->why);
    else if (result->why != NULL)
        why =
            mem_printf("ssh does not accept its configuration: %s (try ssh -G)", result->last_line);
    else if (ssh_config_parse(&answer->config, result->text, result->length,
                              &answer->queries->place, &err) < 0)
        why = mem_strdup(err.text);
    answer_known(answer, why);
}

static void add_option(struct strv *argv, const char *option, const char *value)
{
    if (value == NULL)
        return;
    strv_add(argv, option);
    strv_add(argv, value);
}

static void run_query(struct answer *answer)
{
    const struct ssh_settings *settings = answer->queries->settings;
    struct strv argv AUTO_STRV = STRV_INIT;
    strv_add(&argv, "ssh");
    strv_add(&argv, "-T"); /* else it complains that stdin is not a terminal */
    strv_add(&argv, "-G");
    add_option(&argv, "-F", settings->config_file);
    add_option(&argv, "-i", answer->identity);
    if (answer->port > 0)
        strv_printf(&argv, "-p%d", answer->port);
    add_option(&argv, "-l", answer->user);
    strv_add(&argv, "--");
    strv_add(&argv, answer->host);
    const struct program_spec spec = {.loop = settings->room->loop,
                                      .helpers = settings->room->helpers,
                                      .argv = strv_items(&argv),
                                      .output_max = SSH_CONFIG_OUTPUT_MAX,
                                      .time_max_ms = settings->room->limit_ms};
    answer->program = program_start(&spec, query_done, answer);
}

static void take_defaults(struct answer *answer)
{
    struct ssh_queries *queries = answer->queries;
    struct ssh_config *config = &answer->config;
    ssh_config_defaults(config, answer->host, &queries->place);
    config->hash_names = queries->sight.hash_names;
    if (answer->user != NULL) {
        mem_replace(&config->user, answer->user);
    }
    if (answer->port > 0)
        config->port = answer->port;
    if (answer->identity != NULL) {
        strv_destroy(&config->identities);
        strv_add_take(&config->identities, ssh_config_expand(answer->identity, &queries->place));
    }
    answer->known = true;
}

/* ssh leaves out a key file that is not there, with a warning that the user would not see. With its
 * public half alone the key may be an agent's. */
static char *identity_problem(const struct ssh_queries *queries, const struct ssh_wanted *wanted)
{
    if (wanted->identity == NULL)
        return NULL;
    char *path AUTO_FREE = ssh_config_expand(wanted->identity, &queries->place);
    if (path[0] == '~' || access(path, F_OK) == 0) /* ~ann/ is for ssh to find */
        return NULL;
    int errnum = errno;
    char *public AUTO_FREE = mem_printf("%s.pub", path);
    if (access(public, F_OK) == 0)
        return NULL;
    return mem_printf("cannot find the key file %s (%s): %s", path, wanted->identity_by,
                      strerrordesc_np(errnum));
}

static bool has_options(const struct answer *answer, const char *user, const char *identity,
                        int port)
{
    return answer->port == port && text_same(answer->user, user) &&
           text_same(answer->identity, identity);
}

/* The first host that has the same answer; NULL. */
static struct answer *first_like(struct answer *answer)
{
    const struct ssh_queries *queries = answer->queries;
    if (queries->sight.by_host)
        return NULL;
    answer->edition = queries->edition;
    struct answer *at;
    LIST_FOREACH (at, &queries->answers, all) {
        if (at != answer && at->edition == answer->edition &&
            has_options(at, answer->user, answer->identity, answer->port))
            return at->like == NULL ? at : at->like;
    }
    return NULL;
}

static void ask_ssh(struct answer *answer)
{
    answer->like = first_like(answer);
    if (answer->like == NULL)
        run_query(answer);
    else if (answer->like->known)
        follow(answer);
}

static struct answer *answer_for(struct ssh_queries *queries, const struct ssh_wanted *wanted)
{
    struct answer *answer;
    LIST_FOREACH (answer, &queries->answers, all) {
        if (strcmp(answer->host, wanted->host) == 0 &&
            has_options(answer, wanted->user, wanted->identity, wanted->port))
            return answer;
    }
    look(queries);
    answer = MEM_NEW((struct answer){.queries = queries,
                                     .host = mem_strdup(wanted->host),
                                     .user = mem_strdup(wanted->user),
                                     .identity = mem_strdup(wanted->identity),
                                     .port = wanted->port});
    ssh_config_init(&answer->config);
    LIST_INSERT_HEAD(&queries->answers, answer, all);
    answer->why = identity_problem(queries, wanted);
    if (answer->why != NULL)
        answer->known = true;
    else if (queries->sight.matters)
        ask_ssh(answer);
    else
        take_defaults(answer);
    return answer;
}

struct ssh_question *ssh_query_ask(struct ssh_queries *queries, const struct ssh_wanted *wanted,
                                   void (*done)(void *context, const struct ssh_config *config,
                                                const char *why),
                                   void *context)
{
    struct ssh_question *question = MEM_NEW((struct ssh_question){
        .answer = answer_for(queries, wanted), .done = done, .context = context});
    question->timer = loop_timer_create(queries->settings->room->loop, question_fire, question);
    LIST_INSERT_HEAD(&queries->questions, question, all);
    if (question->answer->known)
        loop_timer_set(question->timer, 0);
    return question;
}

void ssh_question_destroy(struct ssh_question *question)
{
    if (question == NULL)
        return;
    LIST_REMOVE(question, all);
    loop_timer_destroy(question->timer);
    free(question);
}
