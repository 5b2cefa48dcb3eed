/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/config.h"

#include <errno.h>
#include <glob.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/program.h"

#define CONFIG_FILE_MAX ((size_t)1 << 20)
#define SYSTEM_CONFIG "/etc/ssh/ssh_config"
#define CONFIG_TEXT_MAX ((size_t)16 << 20) /* of all files */

struct answer {
    struct answer *next;
    struct ssh_queries *queries;
    char *key;
    char *host, *user, *identity; /* as in struct ssh_wanted */
    int port;
    char *class;             /* equal for hosts with the same answer; NULL: it has its own */
    struct answer *like;     /* the first of its class; NULL: it is that itself */
    struct program *program; /* `ssh -G`, still running */
    bool known;
    char *why; /* NULL: `config` is good */
    struct ssh_config config;
};

struct ssh_question {
    struct ssh_question *next;
    struct ssh_queries *queries;
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
    unsigned edition; /* of the text: an answer holds for others by the same one only */
    struct answer *answers;
    struct ssh_question *questions;
};

static const char *variable(const char *name)
{
    return getenv(name);
}

struct ssh_queries *ssh_queries_create(const struct ssh_settings *settings)
{
    struct ssh_queries *queries = mem_alloc(sizeof(*queries));
    queries->settings = settings;
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
    while (queries->answers != NULL) {
        struct answer *answer = queries->answers;
        queries->answers = answer->next;
        program_cancel(answer->program);
        ssh_config_destroy(&answer->config);
        free(answer->key);
        free(answer->host);
        free(answer->user);
        free(answer->identity);
        free(answer->class);
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

/* Whether what was said of the first of a class holds for the others. A host that the others are
 * reached through is not reached through itself. */
static bool is_for_all(const struct answer *first)
{
    return first->why == NULL && first->config.proxy_jump == NULL &&
           strcmp(first->config.host_name, first->host) == 0;
}

/* The first of its class is known. If the files have changed, ssh may have read others than we. */
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
    for (struct ssh_question *at = answer->queries->questions; at != NULL; at = at->next) {
        if (at->answer == answer)
            loop_timer_set(at->timer, 0);
    }
}

static void answer_known(struct answer *answer, char *why)
{
    answer->known = true;
    answer->why = why;
    tell(answer);
    for (struct answer *at = answer->queries->answers; at != NULL; at = at->next) {
        if (at->like == answer && !at->known && at->program == NULL)
            follow(at);
        if (at->like == answer && at->known)
            tell(at);
    }
}

static void query_done(void *context, const struct program_result *result)
{
    struct answer *answer = context;
    answer->program = NULL;
    if (result->why != NULL && result->status < 0) {
        answer_known(answer, mem_printf("cannot read the ssh configuration: %s", result->why));
        return;
    }
    if (result->why != NULL) {
        answer_known(answer, mem_printf("ssh does not accept its configuration: %s (try ssh -G)",
                                        result->last_line));
        return;
    }
    struct error err = ERROR_INIT;
    int rc = ssh_config_parse(&answer->config, result->text, result->length,
                              &answer->queries->place, &err);
    answer_known(answer, rc < 0 ? mem_strdup(err.text) : NULL);
}

static void run_query(struct answer *answer)
{
    const struct ssh_settings *settings = answer->queries->settings;
    struct strv argv AUTO_STRV = STRV_INIT;
    strv_add(&argv, "ssh");
    strv_add(&argv, "-T"); /* else it complains that stdin is not a terminal */
    strv_add(&argv, "-G");
    if (settings->config_file != NULL) {
        strv_add(&argv, "-F");
        strv_add(&argv, settings->config_file);
    }
    if (answer->identity != NULL) {
        strv_add(&argv, "-i");
        strv_add(&argv, answer->identity);
    }
    if (answer->port > 0) {
        strv_add(&argv, "-p");
        strv_printf(&argv, "%d", answer->port);
    }
    if (answer->user != NULL) {
        strv_add(&argv, "-l");
        strv_add(&argv, answer->user);
    }
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
        free(config->user);
        config->user = mem_strdup(answer->user);
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

/* The first host that has the same answer; NULL. */
static struct answer *first_of_class(struct answer *answer)
{
    if (answer->queries->sight.by_host)
        return NULL;
    answer->class = mem_printf("%u %s@%d@%s", answer->queries->edition,
                               answer->user == NULL ? "" : answer->user, answer->port,
                               answer->identity == NULL ? "" : answer->identity);
    for (struct answer *at = answer->queries->answers; at != NULL; at = at->next) {
        if (at != answer && at->class != NULL && strcmp(at->class, answer->class) == 0)
            return at->like == NULL ? at : at->like;
    }
    return NULL;
}

static void ask_ssh(struct answer *answer)
{
    answer->like = first_of_class(answer);
    if (answer->like == NULL)
        run_query(answer);
    else if (answer->like->known)
        follow(answer);
}

static struct answer *answer_for(struct ssh_queries *queries, const struct ssh_wanted *wanted)
{
    char *key AUTO_FREE =
        mem_printf("%s@%s@%d@%s", wanted->user == NULL ? "" : wanted->user, wanted->host,
                   wanted->port, wanted->identity == NULL ? "" : wanted->identity);
    struct answer *answer = queries->answers;
    while (answer != NULL && strcmp(answer->key, key) != 0)
        answer = answer->next;
    if (answer != NULL)
        return answer;
    look(queries);
    answer = mem_alloc(sizeof(*answer));
    *answer = (struct answer){.next = queries->answers,
                              .queries = queries,
                              .key = mem_strdup(key),
                              .host = mem_strdup(wanted->host),
                              .user = mem_strdup(wanted->user),
                              .identity = mem_strdup(wanted->identity),
                              .port = wanted->port};
    ssh_config_init(&answer->config);
    queries->answers = answer;
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
    struct ssh_question *question = mem_alloc(sizeof(*question));
    *question = (struct ssh_question){.next = queries->questions,
                                      .queries = queries,
                                      .answer = answer_for(queries, wanted),
                                      .done = done,
                                      .context = context};
    question->timer = loop_timer_create(queries->settings->room->loop, question_fire, question);
    queries->questions = question;
    if (question->answer->known)
        loop_timer_set(question->timer, 0);
    return question;
}

void ssh_question_destroy(struct ssh_question *question)
{
    if (question == NULL)
        return;
    struct ssh_question **at = &question->queries->questions;
    while (*at != question)
        at = &(*at)->next;
    *at = question->next;
    loop_timer_destroy(question->timer);
    free(question);
}
