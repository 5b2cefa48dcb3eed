/* SPDX-License-Identifier: Apache-2.0 */
#include "model/explain/quote.h"

#include <stdbool.h>
#include <string.h>

#include "model/exit/symptom.h"

#define FATAL "Fatal Python error:"
#define FATAL_FRAMES 2
#define LINE_COMPARED 100
#define TRACEBACK "Traceback (most recent call last)"

/* Only the first two are never quoted: the others may be all that there is. */
static const char *const noise[] = {
    "preparing to dump debug info", /* ProcessGroupNCCL, because hvdrun has asked */
    "dump signal from another rank",
    " NCCL INFO ",
    "destroy_process_group() was not called",
    "(most recent call first):",
    "leaked semaphore objects",
    "leaked shared_memory objects",
    "warnings.warn(",
    "UserWarning: ",
    "FutureWarning: ",
    "DeprecationWarning: ",
    "ResourceWarning: ",
};
#define NOISE_ALWAYS 2
#define NOISE_ALL (sizeof(noise) / sizeof(noise[0]))

static bool has(const char *line, size_t length, const char *text)
{
    return memmem(line, length, text, strlen(text)) != NULL;
}

static bool is_noise(const char *line, size_t length, size_t kinds)
{
    bool marks = strspn(line, "^~ \t") >= length; /* empty, or below a line of a traceback */
    for (size_t i = 0; i < kinds && !marks; i++)
        marks = has(line, length, noise[i]);
    return marks;
}

static size_t skip_line(const char *text, size_t at)
{
    at += strcspn(text + at, "\n");
    return at + (text[at] == '\n');
}

/* The beginning of the line before the one at `at`. */
static size_t line_before(const char *text, size_t at)
{
    if (at == 0)
        return 0;
    for (at--; at > 0 && text[at - 1] != '\n';)
        at--;
    return at;
}

/* Where the last traceback before `end` begins. false: there is none. */
static bool find_traceback(const char *text, size_t end, size_t *at)
{
    while (end > 0) {
        size_t begin = line_before(text, end);
        if (has(text + begin, end - begin, TRACEBACK)) {
            *at = begin;
            return true;
        }
        end = begin;
    }
    return false;
}

static bool read_error(const char *text, struct symptom *out)
{
    struct tail tail = {.total = 0};
    tail_add(&tail, text, strlen(text), 0);
    symptom_read(&tail, INT64_MAX, out);
    tail_destroy(&tail);
    return out->kind != SYMPTOM_NONE;
}

/* Python says where it was below the line that names the error. */
static size_t end_of_fatal(const char *text, size_t at)
{
    size_t end = at;
    for (int frames = 0; frames < FATAL_FRAMES && text[at] != '\0';) {
        bool frame = strncmp(text + at, "  File \"", 8) == 0;
        if (frames > 0 && !frame)
            break;
        at = skip_line(text, at);
        frames += frame;
        end = frame ? at : end;
    }
    return end;
}

/* The end of the line that names the error, which is after `at`. Of a long line, the error has the
 * beginning. */
static size_t end_of_error(const char *text, size_t at, const struct symptom *error)
{
    size_t length = strnlen(error->line, LINE_COMPARED);
    const char *found =
        length == 0 ? NULL : memmem(text + at, strlen(text + at), error->line, length);
    if (found == NULL)
        return strlen(text);
    at = skip_line(text, (size_t)(found - text));
    return strncmp(found, FATAL, strlen(FATAL)) == 0 ? end_of_fatal(text, at) : at;
}

/* Of the last error. Python may write a traceback that ends nothing after the one that counts. The
 * line before a traceback says so. */
static size_t find_end(const char *text)
{
    struct symptom error;
    size_t at = strlen(text);
    while (find_traceback(text, at, &at)) {
        if (read_error(text + line_before(text, at), &error))
            return end_of_error(text, at, &error);
    }
    return read_error(text, &error) ? end_of_error(text, 0, &error) : strlen(text);
}

static void add_last(const char *text, size_t end, size_t kinds, struct strv *out)
{
    size_t places[QUOTE_LINES], count = 0;
    while (end > 0 && count < QUOTE_LINES) {
        size_t begin = line_before(text, end), length = strcspn(text + begin, "\n");
        if (!is_noise(text + begin, length, kinds))
            places[count++] = begin;
        end = begin;
    }
    while (count-- > 0) {
        const char *line = text + places[count];
        size_t length = strcspn(line, "\n"), blanks = strspn(line, " \t");
        strv_add_n(out, line + blanks, length - blanks);
    }
}

void explain_quote(const char *text, struct strv *out)
{
    size_t before = out->count, end = find_end(text);
    add_last(text, end, NOISE_ALL, out);
    if (out->count == before)
        add_last(text, end, NOISE_ALWAYS, out);
}
