/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/tell.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"

#define COMMAND_MAX 48 /* bytes of a command in the table */

struct widths {
    int rank, host, local, cross, app;
};

static int digits(int number)
{
    return snprintf(NULL, 0, "%d", number);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* Printable in a terminal and safe to paste into a shell: quoted where needed, no control bytes. */
static void append_word(struct buf *out, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "%+,-./:=@_^";
    bool quote = word[0] == '\0' || word[strspn(word, plain)] != '\0';
    if (quote)
        buf_putc(out, '\'');
    for (const char *at = word; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '\'')
            buf_puts(out, "'\\''");
        else
            buf_putc(out, c < 0x20 || c == 0x7f ? '?' : *at);
    }
    if (quote)
        buf_putc(out, '\'');
}

/* The command on one line, cut where a UTF-8 character ends. The caller owns it. */
static char *short_command(const struct app *app)
{
    struct buf line AUTO_BUF = BUF_INIT(SIZE_MAX / 4);
    for (size_t i = 0; i < app->argv.count && line.length <= COMMAND_MAX; i++) {
        if (i > 0)
            buf_putc(&line, ' ');
        append_word(&line, app->argv.items[i]);
    }
    if (line.length <= COMMAND_MAX)
        return line.length > 0 ? buf_take(&line) : mem_strdup("-");
    const char *text = buf_text(&line);
    return mem_printf("%.*s...", (int)plain_cut(text, COMMAND_MAX - 3), text);
}

static struct widths measure(const struct plan *plan, const struct app_list *apps)
{
    struct widths w = {.host = (int)strlen("HOST"), .local = (int)strlen("LOCAL")};
    int local = 1;
    for (int n = 0; n < plan->node_count; n++) {
        w.host = larger(w.host, (int)strlen(plan->nodes[n].name));
        local = larger(local, plan->nodes[n].local_size);
    }
    w.rank = larger((int)strlen("RANK"), digits(plan->size - 1));
    w.local = larger(w.local, digits(local - 1) + 1 + digits(local));
    w.cross = (int)strlen("CROSS");
    w.cross = larger(w.cross, digits(plan->node_count - 1) + 1 + digits(plan->node_count));
    w.app = larger((int)strlen("APP"), digits((int)apps->count - 1));
    return w;
}

static int summary(const struct plan *plan, const struct app_list *apps, struct buf *out)
{
    long long slots = 0;
    bool over = false;
    for (int n = 0; n < plan->node_count; n++) {
        slots += plan->nodes[n].slots;
        over = over || plan->nodes[n].local_size > plan->nodes[n].slots;
    }
    return buf_printf(out, "%d rank%s of %zu program%s on %d host%s with %lld slot%s%s\n",
                      plan->size, plan->size == 1 ? "" : "s", apps->count,
                      apps->count == 1 ? "" : "s", plan->node_count,
                      plan->node_count == 1 ? "" : "s", slots, slots == 1 ? "" : "s",
                      over ? ", oversubscribed" : "");
}

int dry_run_table(const struct plan *plan, const struct app_list *apps, struct buf *out)
{
    struct widths w = measure(plan, apps);
    char **commands = mem_array(apps->count, sizeof(*commands));
    for (size_t a = 0; a < apps->count; a++)
        commands[a] = short_command(&apps->items[a]);
    int result = summary(plan, apps, out);
    if (result == 0)
        result = buf_printf(out, "%*s  %-*s  %*s  %*s  %*s  COMMAND\n", w.rank, "RANK", w.host,
                            "HOST", w.local, "LOCAL", w.cross, "CROSS", w.app, "APP");
    for (int r = 0; r < plan->size && result == 0; r++) {
        const struct plan_rank *rank = &plan->ranks[r];
        const struct plan_node *node = &plan->nodes[rank->node];
        char local[32], cross[32];
        snprintf(local, sizeof(local), "%d/%d", rank->local_rank, node->local_size);
        snprintf(cross, sizeof(cross), "%d/%d", rank->cross_rank, rank->cross_size);
        result = buf_printf(out, "%*d  %-*s  %*s  %*s  %*d  %s\n", w.rank, rank->rank, w.host,
                            node->name, w.local, local, w.cross, cross, w.app, rank->app,
                            commands[rank->app]);
    }
    for (size_t a = 0; a < apps->count; a++)
        free(commands[a]);
    free(commands);
    return result;
}

/* A JSON string from any bytes: each byte that is not part of a UTF-8 character becomes U+FFFD. */
static json_t *any_string(const char *text)
{
    json_t *string = json_string(text);
    if (string != NULL)
        return string;
    struct buf valid AUTO_BUF = BUF_INIT(SIZE_MAX / 4);
    for (size_t left = strlen(text), used; left > 0; text += used, left -= used) {
        size_t length = plain_character(text, left);
        if (length == 0)
            buf_puts(&valid, "\xef\xbf\xbd");
        else
            buf_append(&valid, text, length);
        used = length == 0 ? 1 : length;
    }
    return json_string(buf_text(&valid));
}

static int append_bytes(const char *bytes, size_t length, void *context)
{
    return buf_append(context, bytes, length);
}

/* One member of an array on a line of its own; consumes `value`. */
static int append_member(struct buf *out, json_t *value, bool last)
{
    int result = -1;
    if (value != NULL && buf_puts(out, "    ") == 0 &&
        json_dump_callback(value, append_bytes, out, 0) == 0)
        result = buf_puts(out, last ? "\n" : ",\n");
    json_decref(value);
    return result;
}

static int append_nodes(struct buf *out, const struct plan *plan)
{
    int result = buf_puts(out, "  \"nodes\": [\n");
    for (int n = 0; n < plan->node_count && result == 0; n++) {
        const struct plan_node *node = &plan->nodes[n];
        json_t *value = json_pack("{s:s, s:i, s:i}", "name", node->name, "slots", node->slots,
                                  "local_size", node->local_size);
        if (value != NULL && node->local_size > 0)
            json_object_set_new(value, "first_rank", json_integer(node->ranks[0]));
        result = append_member(out, value, n == plan->node_count - 1);
    }
    return result;
}

static int append_ranks(struct buf *out, const struct plan *plan)
{
    int result = buf_puts(out, "  ],\n  \"ranks\": [\n");
    for (int r = 0; r < plan->size && result == 0; r++) {
        const struct plan_rank *rank = &plan->ranks[r];
        const struct plan_node *node = &plan->nodes[rank->node];
        json_t *value = json_pack("{s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "rank", rank->rank,
                                  "host", node->name, "local_rank", rank->local_rank, "local_size",
                                  node->local_size, "cross_rank", rank->cross_rank, "cross_size",
                                  rank->cross_size, "app", rank->app, "app_rank", rank->app_rank);
        result = append_member(out, value, r == plan->size - 1);
    }
    return result;
}

static int append_apps(struct buf *out, const struct plan *plan, const struct app_list *apps)
{
    int *np AUTO_FREE = mem_array(apps->count, sizeof(*np));
    for (int r = 0; r < plan->size; r++)
        np[plan->ranks[r].app]++;
    int result = buf_puts(out, "  ],\n  \"apps\": [\n");
    for (size_t a = 0; a < apps->count && result == 0; a++) {
        json_t *argv = json_array();
        for (size_t i = 0; i < apps->items[a].argv.count; i++)
            json_array_append_new(argv, any_string(apps->items[a].argv.items[i]));
        json_t *value = json_pack("{s:o, s:i}", "argv", argv, "np", np[a]);
        result = append_member(out, value, a == apps->count - 1);
    }
    return result;
}

int dry_run_json(const struct plan *plan, const struct app_list *apps, struct buf *out)
{
    if (buf_printf(out, "{\n  \"size\": %d,\n", plan->size) < 0 || append_nodes(out, plan) < 0 ||
        append_ranks(out, plan) < 0 || append_apps(out, plan, apps) < 0)
        return -1;
    return buf_puts(out, "  ]\n}\n");
}
