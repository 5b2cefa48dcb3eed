/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hosts/hostfile.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "model/hosts/entry.h"
#include "model/hosts/hostfile_ini.h"
#include "model/hosts/hostfile_test.h"
#include "model/hosts/hosts.h"

/*
 * Hostfiles with a host on each line (docs/hosts.md): what horovodrun, Open MPI, MPICH, Slurm,
 * PBS, LSF and SGE write. Each line is read on its own, so dialects may be mixed. Pure.
 */

#define SGE_WORDS 2 /* behind the count: the queue, and the processors or UNDEFINED */

/* Keys that others have for one host, and we for all of them. */
static const struct {
    const char *name, *option;
} job_wide[] = {
    {"binding", "--bind-to"},
    {"ifname", "--network-interfaces"},
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_number(const char *text, size_t length)
{
    size_t digits = 0;
    while (digits < length && text[digits] >= '0' && text[digits] <= '9')
        digits++;
    return length > 0 && digits == length;
}

bool hostfile_line_is_section(const char *text, size_t length)
{
    size_t at = 1;
    if (length == 0 || text[0] != '[')
        return false;
    while (at < length && text_is_blank(text[at]))
        at++;
    size_t word = at;
    while (at < length && is_letter(text[at]))
        at++;
    return at > word && at < length && (text_is_blank(text[at]) || text[at] == ']');
}

static int unknown_word(const char *word, size_t length, bool value_follows, struct error *err)
{
    for (size_t i = 0; value_follows && i < sizeof(job_wide) / sizeof(job_wide[0]); i++) {
        if (text_is(word, length, job_wide[i].name))
            return error_usage(err,
                               "'%s' applies to the whole job; expected %s on the command line",
                               job_wide[i].name, job_wide[i].option);
    }
    return error_usage(err,
                       "'%s' is unknown here; expected slots=N, max_slots=N, user=NAME, port=N, "
                       "address=NAME, identity=FILE, transport=KIND, gpus=N or wdir=FOLDER",
                       plain_show(word, length).text);
}

/* `node1 4 all.q@node1 UNDEFINED`: SGE's, of which only the count matters. */
static int take_sge(struct text_rest *words, const char *count, size_t length,
                    struct host_said *said, struct error *err)
{
    for (int i = 0; i < SGE_WORDS && words->at < words->end; i++) {
        const char *word;
        size_t used = text_take_word(words, '=', &word);
        if (text_take_byte(words, '='))
            return unknown_word(word, used, true, err);
    }
    if (words->at < words->end)
        return unknown_word(words->at, (size_t)(words->end - words->at), false, err);
    return host_key_read(HOST_KEY_SLOTS, count, length, &said->values[HOST_KEY_SLOTS], err);
}

static int say(struct host_said *said, enum host_key key, const char *text, size_t length,
               struct error *err)
{
    if (said->values[key].text != NULL)
        return error_usage(err, "%s twice; expected one", host_key_name(key));
    return host_key_read(key, text, length, &said->values[key], err);
}

/* `slots=4 max_slots=8 user=ann` behind the name, in any order. */
static int take_attributes(struct text_rest *words, struct host_said *said, struct error *err)
{
    for (bool first = true; words->at < words->end; first = false) {
        const char *word, *value;
        size_t length = text_take_word(words, '=', &word);
        bool equals = text_take_byte(words, '=');
        if (first && !equals && is_number(word, length))
            return take_sge(words, word, length, said, err);
        enum host_key key = host_key_find(word, length);
        if (key == HOST_KEY_TOTAL || !equals)
            return unknown_word(word, length, equals, err);
        size_t value_length = text_take_word(words, '=', &value);
        if (say(said, key, value, value_length, err) < 0)
            return -1;
    }
    return 0;
}

/* One of the names in front, with the attributes after them. */
static int add_entry(struct host_adding *adding, const char *text, size_t length,
                     const struct host_said *said, struct error *err)
{
    struct host_entry entry;
    if (length == 0)
        return error_usage(err, "an empty name beside a comma; expected HOST,HOST without blanks");
    if (host_entry_split(text, length, &entry, err) < 0)
        return -1;
    for (enum host_key key = HOST_KEY_SLOTS; key < HOST_KEY_TOTAL; key++) {
        if (said->values[key].text == NULL)
            continue;
        if (entry.said.values[key].text != NULL)
            return error_usage(err, "%s twice; expected one", host_key_name(key));
        entry.said.values[key] = said->values[key];
    }
    return host_entry_add(&entry, adding, err);
}

static int parse_hosts(struct host_adding *adding, const char *text, size_t length,
                       struct error *err)
{
    const char *names;
    struct host_said said = {.values = {{.text = NULL}}};
    struct text_rest words = text_rest_of(text, length);
    size_t left = text_take_word(&words, '=', &names);
    if (left == 0 || (words.at < words.end && *words.at == '='))
        return error_usage(err, "no host name in front; expected HOST slots=N or HOST:N");
    if (hostfile_line_is_section(text, length))
        return error_usage(err, "a section after plain host lines; expected HOST slots=N, or every "
                                "host in a section ([host NAME])");
    if (take_attributes(&words, &said, err) < 0)
        return -1;
    size_t used = host_entry_length(names, left);
    if (used < left && said.values[HOST_KEY_ADDRESS].text != NULL)
        return error_usage(err, "one address for several hosts; expected a line for each host");
    while (add_entry(adding, names, used, &said, err) == 0) {
        if (used == left)
            return 0;
        names += used + 1;
        left -= used + 1;
        used = host_entry_length(names, left);
    }
    return -1;
}

/* As hostfile_parse(), without a byte order mark. */
static int hostfile_lines_parse(const struct hostfile *file, struct host_list *out,
                                struct error *err)
{
    struct host_adding adding = {.list = out, .budget = HOSTS_RANGE_MAX, .unit = "line"};
    const char *at = file->bytes, *end = file->bytes + file->length, *text = NULL;
    size_t before = out->said, length = 0;
    int result = 0;
    while (result == 0 && text_next_line(&at, end, &text, &length)) {
        adding.number++;
        text_trim_comment(&text, &length);
        if (length > 0 && parse_hosts(&adding, text, length, err) < 0)
            result = error_wrap(err, "%s:%u: '%s'", file->name, adding.number,
                                plain_show(text, length).text);
    }
    host_adding_end(&adding);
    if (result == 0 && out->said == before)
        return error_usage(err, "%s names no host; expected one per line, as in 'node1 slots=4'",
                           file->name);
    return result;
}

/* Any hostfile. */

static int check_text(const struct hostfile *file, struct error *err)
{
    if (file->length > 0 && memchr(file->bytes, '\0', file->length) != NULL)
        return error_usage(err,
                           "%s is not a text: it holds a NUL byte; expected a text file with one "
                           "host per line",
                           file->name);
    const char *at = file->bytes, *end = file->bytes + file->length, *line = NULL;
    size_t length = 0;
    for (size_t number = 1; text_next_line(&at, end, &line, &length); number++) {
        if (length > HOSTFILE_LINE_MAX)
            return error_usage(err, "%s:%zu: a line of %zu bytes; expected at most %zu", file->name,
                               number, length, HOSTFILE_LINE_MAX);
    }
    return 0;
}

/* Does a section open the file, behind comments and blank lines? */
static bool begins_with_section(const char *at, const char *end)
{
    const char *line = NULL;
    size_t length = 0;
    while (text_next_line(&at, end, &line, &length)) {
        text_trim(&line, &length);
        if (length > 0 && *line != '#' && *line != ';')
            return hostfile_line_is_section(line, length);
    }
    return false;
}

int hostfile_parse(const struct hostfile *file, struct host_list *out, struct error *err)
{
    struct hostfile text = *file;
    if (check_text(file, err) < 0)
        return -1;
    if (text.length >= 3 && memcmp(text.bytes, "\xef\xbb\xbf", 3) == 0) {
        text.bytes += 3; /* editors on other systems write a byte order mark */
        text.length -= 3;
    }
    if (begins_with_section(text.bytes, text.bytes + text.length))
        return hostfile_ini_parse(&text, out, err);
    if (file->group != NULL)
        return error_usage(
            err, "%s has no group '%s': it has no sections; expected a section [group %s]",
            file->name, file->group, file->group);
    return hostfile_lines_parse(&text, out, err);
}
