/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain_json_show.h"

#include <jansson.h>
#include <string.h>

#include "base/plain.h"
#include "model/exit/tail.h"
#include "model/explain/story.h"

static int append_piece(const char *bytes, size_t length, void *out)
{
    return buf_append(out, bytes, length);
}

static void put_json(const struct explain_case *explained, const struct explain_story *story,
                     struct buf *out)
{
    const struct explain_facts *facts = &explained->facts;
    json_t *root = json_object();
    json_object_set_new(root, "job", facts->job != NULL ? json_string(facts->job) : json_null());
    json_object_set_new(root, "status", facts->ended ? json_integer(facts->status) : json_null());
    json_object_set_new(root, "rank", facts->rank >= 0 ? json_integer(facts->rank) : json_null());
    json_object_set_new(root, "headline", json_string(story->headline));
    for (int part = 0; part < EXPLAIN_PARTS; part++) {
        json_t *list = json_array();
        for (size_t i = 0; i < story->parts[part].count; i++)
            json_array_append_new(list, json_string(story->parts[part].items[i]));
        json_object_set_new(root, explain_part_key((enum explain_part)part), list);
    }
    json_dump_callback(root, append_piece, out, JSON_INDENT(2));
    buf_putc(out, '\n');
    json_decref(root);
}

/* One line that may be shown on a terminal: it can be of a rank or a kernel, and cut within a
 * character. */
static void make_line(char *text)
{
    for (char *at = text; (at = strpbrk(at, "\n\t")) != NULL;)
        *at = ' ';
    tail_make_valid(text, strlen(text));
    plain_text(text);
}

static void make_plain(struct explain_story *story)
{
    make_line(story->headline);
    for (int part = 0; part < EXPLAIN_PARTS; part++) {
        for (size_t i = 0; i < story->parts[part].count; i++)
            make_line(story->parts[part].items[i]);
    }
}

void explain_json_show(const struct explain_case *explained, bool json, struct buf *out)
{
    struct explain_story story;
    explain_tell(&explained->facts, &story);
    make_plain(&story);
    if (json)
        put_json(explained, &story, out);
    else
        explain_story_text(&story, out);
    explain_story_destroy(&story);
}
