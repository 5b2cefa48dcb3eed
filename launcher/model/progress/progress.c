/* SPDX-License-Identifier: Apache-2.0 */
#include "model/progress/progress.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "base/text.h"

#define BLANKS " \t\r"
#define NUMBER_MAX 32 /* bytes of a number */

void progress_clear(struct progress *progress)
{
    free(progress->text);
    free(progress->metrics);
    *progress = (struct progress)PROGRESS_INIT;
}

void progress_move(struct progress *to, struct progress *from)
{
    free(to->text);
    free(to->metrics);
    *to = *from;
    *from = (struct progress)PROGRESS_INIT;
}

int progress_set_percent(struct progress *progress, double percent, struct error *err)
{
    if (!(percent >= 0 && percent <= 100))
        return error_set(err, "%g percent is not within 0 to 100", percent);
    progress->percent = percent;
    return 0;
}

int progress_set_eta(struct progress *progress, double seconds, struct error *err)
{
    if (!(seconds >= 0 && seconds <= PROGRESS_ETA_MAX_S))
        return error_set(err, "%g seconds are not within 0 to %g", seconds, PROGRESS_ETA_MAX_S);
    progress->eta_s = seconds;
    return 0;
}

void progress_set_text(struct progress *progress, const char *text, size_t length)
{
    while (length > 0 && strchr(BLANKS, text[length - 1]) != NULL)
        length--;
    free(progress->text);
    progress->text = NULL;
    if (length == 0)
        return;
    length = length > PROGRESS_TEXT_MAX ? plain_cut(text, PROGRESS_TEXT_MAX) : length;
    char *copy = mem_alloc(length + 1);
    memcpy(copy, text, length);
    plain_valid(copy, length);
    plain_line(copy, ' ');
    progress->text = copy;
}

static bool is_name(const char *name)
{
    size_t length = strnlen(name, PROGRESS_NAME_MAX + 1);
    for (size_t i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] > '~')
            return false;
    }
    return length > 0 && length <= PROGRESS_NAME_MAX;
}

static bool is_value(const char *value)
{
    char *end = NULL;
    if (strnlen(value, PROGRESS_VALUE_MAX + 1) > PROGRESS_VALUE_MAX || value[0] == '\0' ||
        strspn(value, "0123456789+-.eEinfatyINFATY") != strlen(value))
        return false;
    (void)strtod(value, &end);
    return *end == '\0';
}

bool progress_add_metric(struct progress *progress, const char *name, const char *value)
{
    size_t at = 0;
    if (!is_name(name) || !is_value(value))
        return false;
    while (at < progress->metric_count && strcmp(progress->metrics[at].name, name) != 0)
        at++;
    if (at == PROGRESS_METRICS_MAX)
        return false;
    if (at == progress->metric_count)
        progress->metrics = mem_resize_array(progress->metrics, ++progress->metric_count,
                                             sizeof(*progress->metrics));
    struct progress_metric *metric = &progress->metrics[at];
    memset(metric, 0, sizeof(*metric));
    memcpy(metric->name, name, strlen(name));
    memcpy(metric->value, value, strlen(value));
    return true;
}

const char *progress_metric(const struct progress *progress, const char *name)
{
    for (size_t i = 0; i < progress->metric_count; i++) {
        if (strcmp(progress->metrics[i].name, name) == 0)
            return progress->metrics[i].value;
    }
    return NULL;
}

/* A number as people write it: no exponent, no "nan", no hexadecimal digits. */
static int number(const char *word, size_t length, double *out, struct error *err)
{
    char copy[NUMBER_MAX + 1] = {0};
    if (length == 0 || length > NUMBER_MAX)
        return error_set(err, "a number of %zu bytes", length);
    memcpy(copy, word, length);
    if (strspn(copy, "0123456789.") != length)
        return error_set(err, "'%s' is not a number", copy);
    return parse_double(copy, 0, PROGRESS_ETA_MAX_S, out, err);
}

/* The last line that is not blank. Empty: there is none. */
static struct text_rest last_line(const char *bytes, size_t length, bool whole)
{
    while (!whole && length > 0 && bytes[length - 1] != '\n')
        length--;
    while (length > 0 && strchr(BLANKS "\n", bytes[length - 1]) != NULL)
        length--;
    size_t from = length;
    while (from > 0 && bytes[from - 1] != '\n')
        from--;
    return text_rest_of(bytes + from, length - from);
}

int progress_parse(const char *bytes, size_t length, bool whole, struct progress *out,
                   struct error *err)
{
    double value = 0;
    const char *word = NULL;
    struct text_rest line = last_line(bytes, length, whole), behind;
    size_t left = (size_t)(line.end - line.at);
    if (left == 0 || left >= PROGRESS_LINE_MAX)
        return error_set(err, "there is no line, or it is too long");
    if (memchr(line.at, '\0', left) != NULL)
        return error_set(err, "the line is not text");
    size_t digits = text_take_word(&line, ' ', &word);
    digits -= word[digits - 1] == '%';
    if (number(word, digits, &value, err) < 0 || progress_set_percent(out, value, err) < 0)
        return -1;
    behind = line;
    digits = text_take_word(&behind, ' ', &word);
    bool unknown = digits == 1 && word[0] == '-';
    bool known = !unknown && number(word, digits, &value, NULL) == 0;
    if (known)
        progress_set_eta(out, value, NULL); /* number() has the same limits */
    if (known || unknown)
        line = behind;
    progress_set_text(out, line.at, (size_t)(line.end - line.at));
    return 0;
}
