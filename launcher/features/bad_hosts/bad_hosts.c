/* SPDX-License-Identifier: Apache-2.0 */
#include "features/bad_hosts/bad_hosts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "base/text.h"

#define LINE_MAX_BYTES 4096
#define BLANKS " \t\r"

static const char head[] = "# Bad hosts, which hvdrun --bad-hosts leaves out. Each line is\n"
                           "#   HOST [since=TIME] [until=TIME] [job=NAME] [REASON]\n"
                           "# A host is left out until TIME (UTC); without until=, for good.\n";

void bad_hosts_add(struct bad_host_list *list, const struct bad_host *host)
{
    if (bad_hosts_find(list, host->name) != NULL)
        return;
    struct bad_host *copy = &MEM_ADD_ROOM(list->items, list->count, list->room);
    *copy = (struct bad_host){.name = mem_strdup(host->name),
                              .since_s = host->since_s,
                              .until_s = host->until_s,
                              .job = mem_strdup(host->job),
                              .reason = mem_strdup(host->reason)};
    map_put(&list->by_name, map_text(copy->name), (void *)list->count);
}

const struct bad_host *bad_hosts_find(const struct bad_host_list *list, const char *name)
{
    size_t found = (size_t)map_get(&list->by_name, map_text(name));
    return found == 0 ? NULL : &list->items[found - 1];
}

void bad_hosts_destroy(struct bad_host_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].job);
        free(list->items[i].reason);
    }
    free(list->items);
    map_clear(&list->by_name, NULL);
    *list = (struct bad_host_list){.count = 0};
}

/* Lines. */

enum line_kind { LINE_EMPTY, LINE_HOST, LINE_WRONG };

struct bad_line {
    char text[LINE_MAX_BYTES]; /* that the rest points into */
    struct bad_host host;
    const char *word, *wrong; /* of a wrong line: which word, and why */
};

static void cut_comment(char *text)
{
    for (char *mark = strchr(text, '#'); mark != NULL; mark = strchr(mark + 1, '#')) {
        if (mark == text || strchr(BLANKS, mark[-1]) != NULL) {
            *mark = '\0';
            return;
        }
    }
}

static enum line_kind is_wrong(struct bad_line *line, const char *word, const char *wrong)
{
    line->word = word;
    line->wrong = wrong;
    return LINE_WRONG;
}

/* LINE_HOST: it was a key and its value; LINE_EMPTY: the reason begins here. */
static enum line_kind take_key(struct bad_line *line, const char *word)
{
    bool fine = true;
    size_t letters = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    if (text_begins(word, "since="))
        fine = parse_utc(word + 6, &line->host.since_s) == 0;
    else if (text_begins(word, "until="))
        fine = parse_utc(word + 6, &line->host.until_s) == 0;
    else if (text_begins(word, "job="))
        line->host.job = (char *)word + 4;
    else if (letters > 0 && word[letters] == '=')
        return is_wrong(line, word, "is not a key; expected since=, until= or job=, then a reason");
    else
        return LINE_EMPTY;
    if (!fine)
        return is_wrong(line, word, "has no time; expected UTC, as in until=2026-11-27T10:33Z");
    return LINE_HOST;
}

static void trim(char *text)
{
    for (size_t end = strlen(text); end > 0 && strchr(BLANKS, text[end - 1]) != NULL; end--)
        text[end - 1] = '\0';
}

static enum line_kind read_line(const char *text, size_t length, struct bad_line *line)
{
    line->host = (struct bad_host){.until_s = BAD_HOST_FOR_GOOD};
    if (length >= sizeof(line->text) || memchr(text, '\0', length) != NULL)
        return is_wrong(line, "", "is not a line of text");
    memcpy(line->text, text, length);
    line->text[length] = '\0';
    cut_comment(line->text);
    trim(line->text);
    for (char *at = line->text;;) {
        char *word = at + strspn(at, BLANKS);
        size_t size = strcspn(word, BLANKS);
        char after = word[size];
        enum line_kind kind = LINE_HOST;
        word[size] = '\0';
        if (line->host.name == NULL && size == 0)
            return LINE_EMPTY;
        if (line->host.name != NULL)
            kind = take_key(line, word);
        else if (name_is_safe(word, size))
            line->host.name = word;
        else
            return is_wrong(line, word, "is not a host name");
        if (kind == LINE_WRONG)
            return kind;
        if (kind == LINE_EMPTY) {
            word[size] = after;
            line->host.reason = *word == '\0' ? NULL : word;
            return LINE_HOST;
        }
        at = word + size + (after != '\0');
    }
}

int bad_hosts_parse(const char *text, size_t length, const char *file, int64_t now_s,
                    struct bad_host_list *out, struct error *err)
{
    struct bad_line *line AUTO_FREE = mem_alloc(sizeof(*line));
    const char *end = text + length, *begin;
    for (int number = 1; text_next_line(&text, end, &begin, &length); number++) {
        enum line_kind kind = read_line(begin, length, line);
        if (kind == LINE_WRONG)
            return error_usage(err, "%s:%d: '%s' %s", file, number,
                               plain_show(line->word, strlen(line->word)).text, line->wrong);
        if (kind == LINE_HOST && line->host.until_s > now_s)
            bad_hosts_add(out, &line->host);
    }
    return 0;
}

/* What becomes of the lines of a file. */
struct update {
    const struct bad_host_list *news;
    int64_t now_s;
    struct bad_host_list for_good; /* of people: stays as it is */
    size_t timed, drop;            /* lines that expire; of them, how many of the oldest go */
};

/* Does the line stay? */
static bool stays(struct update *update, enum line_kind kind, const struct bad_host *host)
{
    if (kind != LINE_HOST || host->until_s == BAD_HOST_FOR_GOOD)
        return true;
    return host->until_s > update->now_s && bad_hosts_find(update->news, host->name) == NULL;
}

/* On one line, and short. The caller frees it. */
static char *reason_of(const struct bad_host *host)
{
    char *reason = mem_strdup(host->reason == NULL ? "" : host->reason);
    plain_line(reason, ' ');
    if (strlen(reason) > BAD_HOSTS_REASON_MAX)
        reason[plain_cut(reason, BAD_HOSTS_REASON_MAX)] = '\0';
    return reason;
}

/* -1: it does not fit. */
static int put_host(const struct bad_host *host, struct buf *out)
{
    char since[UTC_TEXT_SIZE], until[UTC_TEXT_SIZE];
    char *reason AUTO_FREE = reason_of(host);
    const char *job = host->job == NULL ? "" : host->job;
    bool named = job[0] != '\0' && job[strcspn(job, BLANKS "\n#")] == '\0';
    for (char *mark = strchr(reason, '#'); mark != NULL; mark = strchr(mark, '#'))
        *mark = '.'; /* it would begin a comment */
    utc_text(host->since_s, since);
    utc_text(host->until_s, until);
    return buf_printf(out, "%s since=%s until=%s%s%s %s\n", host->name, since, until,
                      named ? " job=" : "", named ? job : "", reason);
}

/* The lines that stay go to `out`; NULL: counts them. -1: too large. */
static int walk_lines(const char *text, size_t length, struct update *update, struct buf *out)
{
    struct bad_line *line AUTO_FREE = mem_alloc(sizeof(*line));
    const char *end = text + length, *begin;
    while (text_next_line(&text, end, &begin, &length)) {
        enum line_kind kind = read_line(begin, length, line);
        bool timed = kind == LINE_HOST && line->host.until_s != BAD_HOST_FOR_GOOD;
        if (!stays(update, kind, &line->host))
            continue;
        if (out == NULL && timed)
            update->timed++;
        else if (out == NULL && kind == LINE_HOST)
            bad_hosts_add(&update->for_good, &line->host);
        else if (out != NULL && timed && update->drop > 0)
            update->drop--;
        else if (out != NULL && (buf_append(out, begin, length) < 0 || buf_putc(out, '\n') < 0))
            return -1;
    }
    return 0;
}

int bad_hosts_update(const char *text, size_t length, const struct bad_host_list *news,
                     int64_t now_s, struct buf *out)
{
    struct update update = {.news = news, .now_s = now_s};
    if (length == 0)
        buf_puts(out, head);
    (void)walk_lines(text, length, &update, NULL);
    size_t total = update.timed + news->count;
    update.drop = total > BAD_HOSTS_MAX ? total - BAD_HOSTS_MAX : 0;
    int result = walk_lines(text, length, &update, out);
    for (size_t i = 0; i < news->count && result == 0; i++) {
        if (bad_hosts_find(&update.for_good, news->items[i].name) == NULL)
            result = put_host(&news->items[i], out);
    }
    bad_hosts_destroy(&update.for_good);
    return result;
}

void bad_hosts_describe(const struct bad_host *host, struct buf *out)
{
    char since[UTC_TEXT_SIZE];
    const char *before = "";
    struct buf more AUTO_BUF = BUF_INIT(LINE_MAX_BYTES + UTC_TEXT_SIZE);
    buf_printf(out, "%s", host->name);
    if (host->reason != NULL) {
        char *reason AUTO_FREE = reason_of(host);
        buf_puts(&more, reason);
        before = "; ";
    }
    if (host->job != NULL) {
        buf_printf(&more, "%sjob %s", before, plain_show(host->job, strlen(host->job)).text);
        before = ", ";
    }
    if (host->since_s > 0) {
        utc_text(host->since_s, since);
        buf_printf(&more, "%ssince %s", before, since);
    }
    if (more.length > 0)
        buf_printf(out, " (%s)", buf_text(&more));
}
