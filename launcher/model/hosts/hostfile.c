/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hosts/hostfile.h"

#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "model/hosts/hostfile_ini.h"
#include "model/hosts/hostfile_line.h"

/* What people hand over by mistake, by its first bytes. */
static const struct {
    const char *start;
    size_t length;
    const char *what;
} strangers[] = {
    {"\x7f"
     "ELF",
     4, "a program"},
    {"\x1f\x8b", 2, "compressed by gzip"},
    {"\xfd"
     "7zXZ",
     5, "compressed by xz"},
    {"(\xb5/\xfd", 4, "compressed by zstd"},
    {"PK\x03\x04", 4, "a zip archive"},
    {"\xff\xfe", 2, "text in UTF-16, not UTF-8"},
    {"\xfe\xff", 2, "text in UTF-16, not UTF-8"},
};

/* NULL: it is text. */
static const char *find_stranger(const struct hostfile *file)
{
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
        if (file->length >= strangers[i].length &&
            memcmp(file->bytes, strangers[i].start, strangers[i].length) == 0)
            return strangers[i].what;
    }
    bool nul = file->length > 0 && memchr(file->bytes, '\0', file->length) != NULL;
    return nul ? "not a text: it holds a NUL byte" : NULL;
}

static size_t line_length(const char *at, const char *end)
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    return (size_t)((stop == NULL ? end : stop) - at);
}

static int check_text(const struct hostfile *file, struct error *err)
{
    const char *what = find_stranger(file);
    if (what != NULL)
        return error_status(err, STATUS_USAGE,
                            "%s is %s; expected a text file with one host per line", file->name,
                            what);
    const char *at = file->bytes, *end = file->bytes + file->length;
    for (size_t number = 1; at < end; number++) {
        size_t length = line_length(at, end);
        if (length > HOSTFILE_LINE_MAX)
            return error_status(err, STATUS_USAGE,
                                "%s:%zu: a line of %zu bytes; expected at most %zu", file->name,
                                number, length, HOSTFILE_LINE_MAX);
        at += length < (size_t)(end - at) ? length + 1 : length;
    }
    return 0;
}

/* Does a section open the file, behind comments and blank lines? */
static bool begins_with_section(const char *at, const char *end)
{
    while (at < end) {
        size_t length = line_length(at, end), skip = 0;
        while (skip < length && strchr(" \t\r", at[skip]) != NULL)
            skip++;
        if (skip < length && at[skip] != '#' && at[skip] != ';')
            return hostfile_line_is_section(at + skip, length - skip);
        at += length < (size_t)(end - at) ? length + 1 : length;
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
        return error_status(
            err, STATUS_USAGE,
            "%s has no group '%s': it has no sections; expected a section [group %s]", file->name,
            file->group, file->group);
    return hostfile_lines_parse(&text, out, err);
}
