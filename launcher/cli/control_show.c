/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_show.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"

#define DAY_S ((long long)24 * 3600)

void control_show_text(const char *text, struct buf *out)
{
    char *plain AUTO_FREE = mem_strdup(text);
    log_make_plain(plain);
    for (const char *at = plain; *at != '\0'; at++)
        buf_putc(out, *at == '\n' || *at == '\t' ? '?' : *at);
}

void control_show_lines(const char *text, const char *margin, struct buf *out)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        char *line AUTO_FREE = mem_strndup(text, length);
        log_make_plain(line);
        buf_printf(out, "%s%s\n", margin, line);
        text += length + (text[length] == '\n');
    }
}

void control_show_duration(double seconds, struct buf *out)
{
    double whole = seconds > 0 && seconds < 1e12 ? seconds : 0;
    long long left = (long long)(whole + 0.5);
    if (left < 60)
        buf_printf(out, "%lld s", left);
    else if (left < 3600)
        buf_printf(out, "%lld min %02lld s", left / 60, left % 60);
    else if (left < 2 * DAY_S)
        buf_printf(out, "%lld h %02lld min", left / 3600, left % 3600 / 60);
    else
        buf_printf(out, "%lld days", left / DAY_S);
}

const char *control_text_of(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? otherwise : text;
}
