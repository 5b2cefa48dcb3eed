/* SPDX-License-Identifier: Apache-2.0 */
#include "model/allocation/source.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/strv.h"
#include "base/text.h"
#include "model/hosts/entry.h"
#include "model/hosts/hosts.h"

/* An allocation as all files of this folder share it. Pure. */

const char *allocation_value(char *const *env, const char *name)
{
    const char *value = env == NULL ? NULL : env_value(env, name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

int allocation_number(char *const *env, const char *name, int64_t min, int64_t max, int64_t *out,
                      struct error *err)
{
    const char *text = allocation_value(env, name);
    if (text == NULL)
        return 0;
    bool number = text[0] >= '0' && text[0] <= '9'; /* parse_int takes a sign */
    if (number && parse_int(text, min, max, out, NULL) == 0)
        return 1;
    return error_usage(err, "%s: '%s' is not a whole number from %lld to %lld", name,
                       plain_show(text, strlen(text)).text, (long long)min, (long long)max);
}

int allocation_lines(const struct allocation_source *source,
                     int (*each)(void *context, const char *line, size_t length, struct error *err),
                     void *context, struct error *err)
{
    const char *at = source->bytes, *end = at + source->length;
    if (source->length > 0 && memchr(at, '\0', source->length) != NULL)
        return error_usage(err, "%s is not a text file: it holds a NUL byte", source->file);
    const char *line = NULL;
    size_t length = 0;
    for (size_t number = 1; text_next_line(&at, end, &line, &length); number++) {
        text_trim(&line, &length);
        if (length > 0 && *line != '#' && each(context, line, length, err) < 0)
            return error_wrap(err, "%s:%zu: '%s'", source->file, number,
                              plain_show(line, length).text);
    }
    return 0;
}

int allocation_add(struct allocation *allocation, const char *name, size_t length, int slots,
                   struct error *err)
{
    if (!name_is_safe(name, length))
        return error_usage(err,
                           "'%s' is not a host name; expected letters, digits, '.', '_' and '-', "
                           "the first one not '-'",
                           plain_show(name, length).text);
    char *copy AUTO_FREE = mem_strndup(name, length);
    hosts_add(&allocation->hosts, copy, slots, true);
    return 0;
}
