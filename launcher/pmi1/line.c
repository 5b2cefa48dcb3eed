/* SPDX-License-Identifier: Apache-2.0 */
#include "pmi1/line.h"

#include <string.h>

/* Where the value of a word ends. */
static char *value_end(const char *name, char *value)
{
    if (strcmp(name, "value") == 0 || strcmp(name, "port") == 0 || strcmp(name, "msg") == 0 ||
        strcmp(name, "message") == 0)
        return value + strlen(value);
    if (strcmp(name, "service") == 0) {
        char *port = strstr(value, " port=");
        return port != NULL ? port : value + strlen(value);
    }
    return value + strcspn(value, " ");
}

/* Cuts the word that starts at *place out of the line and moves *place behind it. */
static int cut_word(char **place, const char **name, const char **value)
{
    char *word = *place;
    char *equals = word + strcspn(word, "= ");
    if (*equals != '=' || equals == word)
        return -1;
    *equals = '\0';
    *name = word;
    *value = equals + 1;
    char *end = value_end(word, equals + 1);
    if (*end != '\0')
        *end++ = '\0';
    *place = end + strspn(end, " ");
    return 0;
}

int pmi1_line_parse(struct pmi1_line *line, const char *bytes, size_t length, struct error *err)
{
    if (length > 0 && bytes[length - 1] == '\r')
        length--;
    if (length >= PMI1_LINE_MAX)
        return error_set(err, "a line of %zu bytes, more than the %d allowed", length,
                         PMI1_LINE_MAX - 1);
    if (memchr(bytes, '\0', length) != NULL)
        return error_set(err, "a line with a zero byte");
    memcpy(line->text, bytes, length);
    line->text[length] = '\0';
    line->command = NULL;
    line->words = 0;
    char *place = line->text + strspn(line->text, " ");
    while (*place != '\0') {
        const char *name = NULL;
        const char *value = NULL;
        if (cut_word(&place, &name, &value) < 0)
            return error_set(err, "a word that is not NAME=VALUE");
        if (line->command == NULL) {
            line->block = strcmp(name, "mcmd") == 0;
            if (!line->block && strcmp(name, "cmd") != 0)
                return error_set(err, "a line that does not begin with cmd=");
            line->command = value;
        } else if (line->words == PMI1_WORDS_MAX) {
            return error_set(err, "a line of more than %d words", PMI1_WORDS_MAX);
        } else {
            line->names[line->words] = name;
            line->values[line->words++] = value;
        }
    }
    if (line->command == NULL)
        return error_set(err, "an empty line");
    return 0;
}

const char *pmi1_line_get(const struct pmi1_line *line, const char *name)
{
    for (size_t i = 0; i < line->words; i++)
        if (strcmp(line->names[i], name) == 0)
            return line->values[i];
    return NULL;
}
