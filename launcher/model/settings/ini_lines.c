/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inih gets its lines from next_line(), and of those that it would cut (at a length chosen when it
 * was built, 200 bytes) the key only: the value is kept beside it. The same holds for sections.
 */
#include "model/settings/ini_lines.h"

#include <ini.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"
#include "base/status.h"
#include "base/text.h"

static const char stand_in[] = "[section]"; /* what inih sees of every section */

struct reading {
    const char *rest; /* of the text */
    struct ini_place place;
    char *section;   /* owned */
    char *own_value; /* owned; the value of the current line when that line is long or quoted */
    bool failed;     /* err is filled */
    const struct ini_reader *reader;
    void *context;
    struct error *err;
};

/* Without the blanks around it, and without the comment, which one of these characters begins
 * behind a blank: as inih would have cut it out. */
static char *trimmed(const char *value, size_t length, const char *comment)
{
    for (size_t i = 1; i < length; i++) {
        if (strchr(comment, value[i]) != NULL && text_is_blank(value[i - 1]))
            length = i;
    }
    text_trim(&value, &length);
    return mem_strndup(value, length);
}

/* false: this is not a section. A name may hold brackets itself, so the last one ends it. */
static bool take_section(struct reading *reading, const char *line, size_t length)
{
    char *text AUTO_FREE = trimmed(line, length, ";#");
    size_t end = strlen(text);
    if (end < 2 || text[end - 1] != ']')
        return false;
    free(reading->section);
    reading->section = trimmed(text + 1, end - 2, "");
    reading->failed = reading->reader->section != NULL &&
                      reading->reader->section(reading->context, &reading->place, reading->section,
                                               reading->err) < 0;
    return true;
}

/* The text between the quotes of a value that is quoted as a whole; only blanks and a comment may
 * follow. The caller's. NULL: it is another value. */
static char *quoted(const char *value, size_t length)
{
    const char *open = value, *end = value + length;
    while (open < end && text_is_blank(*open))
        open++;
    if (open == end || (*open != '"' && *open != '\''))
        return NULL;
    const char *close = memchr(open + 1, *open, (size_t)(end - open - 1));
    if (close == NULL)
        return NULL;
    char *rest AUTO_FREE = trimmed(close, (size_t)(end - close), ";");
    return rest[1] == '\0' ? mem_strndup(open + 1, (size_t)(close - open - 1)) : NULL;
}

/* The value of "key = 'text'". NULL: the line is another one. A comment may begin in the key. */
static char *quoted_value(const char *line, size_t length, size_t key)
{
    if (key >= length || memchr(line, ';', key) != NULL)
        return NULL;
    return quoted(line + key + 1, length - key - 1);
}

/* Writes the line to `out`, or "key=" and the rest to own_value. Returns the bytes written. */
static size_t put_line(struct reading *reading, const char *line, size_t length, char *out,
                       size_t room)
{
    mem_free_at(&reading->own_value);
    if (*line == '[') {
        size_t used = take_section(reading, line, length) ? strlen(stand_in) : 1;
        memcpy(out, stand_in, used); /* a bracket alone: what inih cannot read */
        return used;
    }
    size_t key = strcspn(line, "=:\n");
    if (key + 3 <= room)
        reading->own_value = quoted_value(line, length, key);
    if (reading->own_value != NULL) {
        length = key + 1;
    } else if (length + 2 > room) {
        if (key + 3 > room || key >= length) {
            error_usage(reading->err, "%s:%d: the line is too long", reading->place.file,
                        reading->place.line);
            reading->failed = true;
            return 0;
        }
        reading->own_value = trimmed(line + key + 1, length - key - 1, ";");
        length = key + 1;
    }
    memcpy(out, line, length);
    return length;
}

/* One line for inih, as fgets() would give it. */
static char *next_line(char *out, int room, void *context)
{
    struct reading *reading = context;
    if (*reading->rest == '\0' || reading->failed)
        return NULL;
    reading->place.line++;
    reading->rest += strspn(reading->rest, " \t");
    const char *line = reading->rest;
    size_t length = strcspn(line, "\n");
    reading->rest += length + (line[length] == '\n');
    if (*line == '#' || *line == ';')
        length = 0;
    length = put_line(reading, line, length, out, (size_t)room);
    out[length] = '\n';
    out[length + 1] = '\0';
    return reading->failed ? NULL : out;
}

/* inih: 1 is success. */
static int take_pair(void *context, const char *section, const char *key, const char *value)
{
    struct reading *reading = context;
    (void)section;
    if (reading->failed)
        return 0;
    if (reading->own_value != NULL)
        value = reading->own_value;
    const char *name = reading->section == NULL ? "" : reading->section;
    reading->failed = reading->reader->pair(reading->context, &reading->place, name, key, value,
                                            reading->err) < 0;
    return !reading->failed;
}

/* A line of the text, counted from 1, without the blanks around it. */
static struct plain_shown show_line(const char *text, int number)
{
    for (; number > 1 && *text != '\0'; number--) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    char *line AUTO_FREE = trimmed(text, strcspn(text, "\n"), "");
    return plain_show(line, strlen(line));
}

int ini_lines_read(const char *text, const char *file, const struct ini_reader *reader,
                   void *context, struct error *err)
{
    struct error reason = ERROR_INIT;
    struct reading reading = {.rest = text,
                              .place = {.file = file},
                              .reader = reader,
                              .context = context,
                              .err = err == NULL ? &reason : err};
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
        reading.rest += 3;
    int line = ini_parse_stream(next_line, &reading, take_pair, &reading);
    free(reading.section);
    free(reading.own_value);
    /* inih goes on after a line that it cannot read, so something behind it may have failed too */
    bool unreadable = line > 0 && (!reading.failed || line < reading.place.line);
    if (unreadable)
        return error_usage(err, "%s:%d: '%s': expected [section] or key = value", file, line,
                           show_line(text, line).text);
    if (line < 0 && !reading.failed)
        return error_status(err, STATUS_LAUNCHER, "%s: out of memory", file);
    return reading.failed ? -1 : 0;
}
