/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/exec/template.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/settings/split.h"

#define TEMPLATE_MAX ((size_t)65536)
#define PORT_DEFAULT 22

static int check_percents(const char *word, struct error *err)
{
    for (const char *at = strchr(word, '%'); at != NULL; at = strchr(at + 2, '%')) {
        if (at[1] == '\0' || strchr("hpun%", at[1]) == NULL)
            return error_status(err, STATUS_USAGE,
                                "unknown %%%.1s in the command '%s': %%h is the host, %%p the "
                                "port, %%u the user, %%n the node's number, %%%% a percent sign",
                                at + 1, word);
    }
    return 0;
}

int exec_template_parse(const char *text, struct strv *words, struct error *err)
{
    if (words_split(text, words, err) < 0)
        return -1;
    for (size_t i = 0; i < words->count; i++) {
        if (check_percents(words->items[i], err) < 0)
            return -1;
    }
    return 0;
}

static int add_name(const char *what, const char *name, struct buf *out, struct error *err)
{
    if (!name_is_safe(name, strlen(name)))
        return error_status(err, STATUS_USAGE, "'%s' cannot be the name of a %s", name, what);
    buf_puts(out, name);
    return 0;
}

static int add_user(const struct transport_target *target, struct buf *out, struct error *err)
{
    const struct passwd *own = target->user == NULL ? getpwuid(geteuid()) : NULL;
    const char *user = own != NULL ? own->pw_name : target->user;
    if (user == NULL)
        return error_set(err,
                         "user %u has no name on this machine, but %%u needs one: name a user with "
                         "the host (user@host)",
                         (unsigned)geteuid());
    return add_name("user", user, out, err);
}

static const char *host_of(const struct transport_target *target)
{
    return target->address != NULL ? target->address : target->host;
}

static int add_value(char letter, const struct transport_target *target, struct buf *out,
                     struct error *err)
{
    switch (letter) {
    case 'h': return add_name("host", host_of(target), out, err);
    case 'p': return buf_printf(out, "%d", target->port > 0 ? target->port : PORT_DEFAULT);
    case 'u': return add_user(target, out, err);
    case 'n': return buf_printf(out, "%d", target->node);
    default: return buf_putc(out, '%');
    }
}

static int fill_word(const char *word, const struct transport_target *target, struct strv *argv,
                     bool *has_host, struct error *err)
{
    struct buf out AUTO_BUF = BUF_INIT(2 * TEMPLATE_MAX);
    while (*word != '\0') {
        size_t plain = strcspn(word, "%");
        buf_append(&out, word, plain);
        word += plain;
        if (*word == '\0')
            break;
        *has_host = *has_host || word[1] == 'h';
        if (add_value(word[1], target, &out, err) < 0)
            return -1;
        word += word[1] == '\0' ? 1 : 2;
    }
    strv_add(argv, buf_text(&out));
    return 0;
}

int exec_template_fill(const struct strv *words, const struct transport_target *target,
                       const char *last_word, struct strv *argv, struct error *err)
{
    bool has_host = false;
    for (size_t i = 0; i < words->count; i++) {
        if (fill_word(words->items[i], target, argv, &has_host, err) < 0)
            return -1;
    }
    if (last_word == NULL)
        return 0;
    if (!has_host && fill_word("%h", target, argv, &has_host, err) < 0)
        return -1;
    strv_add(argv, last_word);
    return 0;
}
