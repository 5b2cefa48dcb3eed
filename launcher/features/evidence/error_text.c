/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/error_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "model/exit/symptom.h"

#define ABOUT 12 /* lines that are about the error, and as many before it that may be */
#define MESSAGE 2
#define LINE_COMPARED 100
#define TRACEBACK "Traceback (most recent call last)"
#define FATAL "Fatal Python error:"
#define FATAL_ABORT FATAL " Aborted" /* a library calls abort() after its own report */
#define FRAME "  File \""

/* Only the first ones are never quoted: the others may be all that there is. */
static const char *const noise[] = {
    "preparing to dump debug info", /* ProcessGroupNCCL, because hvdrun has asked */
    "dump signal from another rank",
    " NCCL INFO ",
    "destroy_process_group() was not called",
    "CUDA kernel errors might be asynchronously reported",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING",
    "Compile with `TORCH_USE_CUDA_DSA`",
    "Search for `cuda",
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

/* Files that are not the program's own. */
static const char *const libraries[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                        "\"<frozen ", "\"<string>"};

static bool has(const struct error_line *line, const char *text)
{
    return memmem(line->text, line->length, text, strlen(text)) != NULL;
}

static bool starts(const struct error_line *line, const char *text)
{
    size_t length = strlen(text);
    return line->length >= length && memcmp(line->text, text, length) == 0;
}

static bool is_indented(const struct error_line *line)
{
    return line->length > 0 && (line->text[0] == ' ' || line->text[0] == '\t');
}

/* Empty, or the marks below a line of a traceback. */
static bool is_blank(const struct error_line *line)
{
    for (size_t i = 0; i < line->length; i++) {
        if (strchr("^~ \t\r", line->text[i]) == NULL)
            return false;
    }
    return true;
}

static bool is_noise(const struct error_line *line, size_t kinds)
{
    bool found = is_blank(line);
    for (size_t i = 0; i < kinds && !found; i++)
        found = has(line, noise[i]);
    return found;
}

/* torch.distributed writes "[rank3]: " before each line of a traceback. */
static void skip_label(struct error_line *line)
{
    const char *end = starts(line, "[rank") ? memmem(line->text, line->length, "]: ", 3) : NULL;
    size_t skipped = end == NULL ? 0 : (size_t)(end + 3 - line->text);
    line->text += skipped;
    line->length -= skipped;
}

static void split(const char *text, struct error_text *out)
{
    size_t room = 1;
    for (const char *at = text; *at != '\0'; at++)
        room += *at == '\n';
    out->lines = mem_array(room, sizeof(*out->lines));
    while (*text != '\0') {
        struct error_line *line = &out->lines[out->count++];
        *line = (struct error_line){.text = text, .length = strcspn(text, "\n")};
        text += line->length + (text[line->length] == '\n');
        skip_label(line);
        line->noise = is_noise(line, NOISE_ALL);
    }
}

/* Reads tracebacks, one line after the other. */
struct reader {
    struct error_text *out;
    enum { OUTSIDE, INSIDE, INSIDE_IGNORED } place;
    bool ignored; /* the next traceback ends nothing */
    bool chained; /* the next traceback belongs to the exception before it */
    size_t above, frame, any_frame;
};

static void take_frame(struct reader *r, size_t at)
{
    bool own = true;
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        own = own && !has(&r->out->lines[at], libraries[i]);
    r->any_frame = at;
    r->frame = own ? at : r->frame;
}

static void begin_traceback(struct reader *r, size_t at)
{
    r->place = r->ignored ? INSIDE_IGNORED : INSIDE;
    r->ignored = false;
    r->above = r->chained ? r->above : at;
    r->frame = r->any_frame = r->out->count;
}

static void take_error(struct reader *r, size_t at)
{
    struct error_text *out = r->out;
    out->first = r->chained ? out->first : at;
    out->names = out->begin = at;
    out->above = r->above;
    out->frame = r->frame < out->count ? r->frame : r->any_frame;
    out->found = true;
    r->chained = false;
}

static void read_outside(struct reader *r, size_t at)
{
    const struct error_line *line = &r->out->lines[at];
    if (has(line, TRACEBACK)) {
        begin_traceback(r, at);
    } else if (at == 0 && starts(line, FRAME)) {
        begin_traceback(r, at); /* the first lines of it are gone */
        take_frame(r, at);
    } else if (has(line, "Exception ignored in") || has(line, "--- Logging error ---")) {
        r->ignored = true;
    } else if (has(line, "During handling of the above exception") ||
               has(line, "was the direct cause of the following exception")) {
        r->chained = r->out->found;
    } else if (starts(line, FATAL) && !starts(line, FATAL_ABORT)) {
        r->chained = false;
        r->above = at;
        r->frame = r->any_frame = r->out->count;
        take_error(r, at);
    }
}

static void read_inside(struct reader *r, size_t at)
{
    const struct error_line *line = &r->out->lines[at];
    if (starts(line, FRAME))
        take_frame(r, at);
    if (line->length == 0 || is_indented(line) || has(line, TRACEBACK))
        return;
    if (r->place == INSIDE)
        take_error(r, at);
    r->place = OUTSIDE;
}

static void read_python(struct error_text *out)
{
    struct reader r = {.out = out, .frame = out->count, .any_frame = out->count};
    for (size_t at = 0; at < out->count; at++) {
        if (r.place == OUTSIDE)
            read_outside(&r, at);
        else
            read_inside(&r, at);
    }
}

/* Of a long line, the symptom has the beginning. */
static void read_other(const char *text, struct error_text *out)
{
    struct tail tail = {.total = 0};
    struct symptom symptom;
    tail_add(&tail, text, strlen(text), 0);
    symptom_read(&tail, INT64_MAX, &symptom);
    tail_destroy(&tail);
    size_t length = strnlen(symptom.line, LINE_COMPARED);
    for (size_t at = 0; at < out->count && length > 0 && !out->found; at++) {
        const struct error_line *line = &out->lines[at];
        out->found = memmem(line->text, line->length, symptom.line, length) != NULL;
        out->names = out->begin = out->above = out->first = at;
    }
}

/* The error is unknown: the last lines that say something, or, if none does, the last of all. */
static void take_last(struct error_text *out)
{
    size_t said = 0;
    for (size_t at = 0; at < out->count; at++)
        said += !out->lines[at].noise;
    for (size_t at = 0; at < out->count && said == 0; at++)
        out->lines[at].noise = is_noise(&out->lines[at], NOISE_ALWAYS);
    size_t taken = 0;
    out->names = out->begin = out->end = out->count;
    for (size_t at = out->count; at-- > 0 && taken < ABOUT;) {
        if (out->lines[at].noise)
            continue;
        out->names = taken++ == 0 ? at : out->names;
        out->begin = at;
    }
    out->above = out->begin;
    out->first = out->names;
}

void error_text_read(const char *text, struct error_text *out)
{
    *out = (struct error_text){.count = 0};
    split(text, out);
    out->frame = out->count;
    read_python(out);
    if (!out->found)
        read_other(text, out);
    if (!out->found) {
        take_last(out);
        return;
    }
    bool fatal =
        starts(&out->lines[out->names], FATAL); /* it has an empty line before its frames */
    out->end = out->names + 1;
    while (out->end < out->count && out->end - out->names < ABOUT &&
           (fatal || out->lines[out->end].length > 0))
        out->end++;
}

void error_text_clear(struct error_text *error)
{
    free(error->lines);
    *error = (struct error_text){.count = 0};
}

static bool has_one(const struct error_line *line, const char *words)
{
    while (*words != '\0') {
        size_t length = strcspn(words, "|");
        if (length > 0 && memmem(line->text, line->length, words, length) != NULL)
            return true;
        words += length + (words[length] == '|');
    }
    return false;
}

enum error_match error_text_find(const struct error_text *error, const char *words, size_t *at)
{
    enum error_match match = error->found ? ERROR_TEXT_EXACT : ERROR_TEXT_NEAR;
    size_t before = error->above > ABOUT ? error->above - ABOUT : 0;
    *at = error->first;
    if (error->found && has_one(&error->lines[error->first], words))
        return match;
    for (*at = error->begin; *at < error->end; ++*at) {
        if (has_one(&error->lines[*at], words))
            return match;
    }
    for (*at = error->above; *at > before;) {
        if (has_one(&error->lines[--*at], words))
            return ERROR_TEXT_NEAR;
    }
    return ERROR_TEXT_NOT;
}

struct choice {
    size_t lines[ERROR_TEXT_QUOTED], count;
};

static void choose(const struct error_text *error, size_t at, struct choice *choice)
{
    bool known = at >= error->count || choice->count == ERROR_TEXT_QUOTED ||
                 (choice->count > 0 && error->lines[at].noise);
    for (size_t i = 0; i < choice->count && !known; i++)
        known = choice->lines[i] == at;
    if (!known)
        choice->lines[choice->count++] = at;
}

/* What follows the error is its message, or, in output without a known error, the next lines. */
static void choose_after(const struct error_text *error, size_t at, struct choice *choice)
{
    size_t taken = 0;
    for (size_t i = at + 1; i < error->end && taken < MESSAGE; i++) {
        const struct error_line *line = &error->lines[i];
        if (line->noise)
            continue;
        if (error->found && !is_indented(line))
            return;
        choose(error, i, choice);
        taken++;
    }
}

static void choose_before(const struct error_text *error, size_t at, struct choice *choice)
{
    while (at-- > 0 && choice->count < ERROR_TEXT_QUOTED) {
        if (!error->lines[at].noise)
            choose(error, at, choice);
    }
}

static int by_place(const void *a, const void *b)
{
    const size_t *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

void error_text_quote(const struct error_text *error, size_t at, struct strv *out)
{
    struct choice choice = {.count = 0};
    size_t assertion;
    choose(error, at, &choice);
    if (error->found)
        choose(error, error->names, &choice);
    choose_after(error, error->found ? error->names : at, &choice);
    if (error->found)
        choose(error, error->first, &choice);
    if (error->found && error_text_find(error, "Assertion `", &assertion))
        choose(error, assertion, &choice);
    if (error->frame < error->count) {
        choose(error, error->frame, &choice);
        choose(error, error->frame + 1, &choice);
    } else {
        choose_before(error, at, &choice);
    }
    qsort(choice.lines, choice.count, sizeof(choice.lines[0]), by_place);
    for (size_t i = 0; i < choice.count; i++) {
        const struct error_line *line = &error->lines[choice.lines[i]];
        size_t blanks = 0;
        while (blanks < line->length && strchr(" \t", line->text[blanks]) != NULL)
            blanks++;
        strv_add_n(out, line->text + blanks, line->length - blanks);
    }
}

/* From a line of Python: File "/home/me/train.py", line 35, in load */
char *error_text_place(const struct error_text *error)
{
    if (error->frame >= error->count)
        return NULL;
    const struct error_line *line = &error->lines[error->frame];
    char *copy AUTO_FREE = mem_strndup(line->text, line->length);
    char *path = copy + strlen(FRAME), *quote = strchr(path, '"');
    if (quote == NULL || strncmp(quote, "\", line ", 8) != 0)
        return NULL;
    *quote = '\0';
    const char *name = text_base_name(path);
    char *number = quote + 8;
    size_t digits = strspn(number, "0123456789");
    const char *in = strstr(number, " in ");
    char *function AUTO_FREE = mem_strdup(in == NULL ? "" : in + 4);
    number[digits] = '\0';
    if (function[0] == '\0' || function[0] == '<')
        return mem_printf("%.100s:%s", name, number);
    return mem_printf("%.100s:%s (%.100s)", name, number, function);
}
