/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/config_line.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

bool ssh_config_line_next(const char **text, size_t *left, char **line)
{
    if (*left == 0)
        return false;
    const char *start = *text, *newline = memchr(start, '\n', *left);
    size_t length = newline == NULL ? *left : (size_t)(newline - start);
    *text += length + (newline != NULL);
    *left -= length + (newline != NULL);
    while (length > 0 && isspace((unsigned char)start[length - 1]))
        length--;
    while (length > 0 && isspace((unsigned char)*start))
        start++, length--;
    bool strange = length > SSH_CONFIG_LINE_MAX || memchr(start, '\0', length) != NULL;
    *line = strange ? NULL : mem_strndup(start, length);
    return true;
}

bool ssh_config_line_is(const char *line, const char *keyword, const char **value)
{
    size_t length = strlen(keyword);
    if (strncasecmp(line, keyword, length) != 0)
        return false;
    const char *at = line + length;
    if (*at != '\0' && *at != '=' && !isspace((unsigned char)*at))
        return false;
    *value = at + strspn(at, " \t=");
    return true;
}
