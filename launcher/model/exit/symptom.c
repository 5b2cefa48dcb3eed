/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/symptom.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"
#include "model/exit/record.h"

enum sign_kind {
    SIGN_NONE,
    SIGN_OWN,
    SIGN_LEFT,
    SIGN_LOST,
    SIGN_CLOSED,
    SIGN_TIMEOUT,
    SIGN_SILENT,
    SIGN_OPEN
};

static const struct {
    enum sign_kind kind;
    const char *text;
} signs[] = {
#define SIGN(kind, text) {SIGN_##kind, text},
#include "model/exit/symptom.def"
#undef SIGN
};

#define TRACEBACK "Traceback (most recent call last)"

enum place {
    PLACE_OUTSIDE,
    PLACE_TRACEBACK, /* its frames; the exception is the next line that is not indented */
    PLACE_IGNORED,   /* the same in a traceback that ends nothing */
};

struct reader {
    struct symptom *out;
    enum place place;
    bool ignored;     /* the next traceback ends nothing */
    bool chained;     /* the next traceback belongs to the exception before it */
    bool open;        /* out->kind is OWN until a next line says otherwise */
    bool began;       /* an error began, at `error_ns` */
    int64_t begun_ns; /* the present traceback */
    int64_t error_ns; /* the last line of an error */
};

static bool contains(const struct tail_line *line, const char *text)
{
    return memmem(line->text, line->length, text, strlen(text)) != NULL;
}

static bool starts(const struct tail_line *line, const char *text)
{
    size_t length = strlen(text);
    return line->length >= length && memcmp(line->text, text, length) == 0;
}

/* What a line says. */
struct sign {
    enum sign_kind kind;
    int rank; /* that it names; -1: none */
};

/* The length of the number of a rank at the start of `text`; 0: there is none. */
static size_t read_rank(const char *text, size_t length, int *rank)
{
    size_t digits = 0;
    *rank = 0;
    for (; digits < length && digits < 9 && text[digits] >= '0' && text[digits] <= '9'; digits++)
        *rank = *rank * 10 + (text[digits] - '0');
    return digits;
}

/* A text with one # for the number of a rank. */
static bool contains_rank(const struct tail_line *line, const char *text, int *rank)
{
    size_t head = strcspn(text, "#"), tail = strlen(text + head + 1);
    const char *end = line->text + line->length;
    const char *at = memmem(line->text, line->length, text, head);
    for (; at != NULL; at = memmem(at, (size_t)(end - at), text, head)) {
        at += head;
        size_t digits = read_rank(at, (size_t)(end - at), rank);
        if (digits > 0 && (size_t)(end - at) >= digits + tail &&
            memcmp(at + digits, text + head + 1, tail) == 0)
            return true;
    }
    return false;
}

static struct sign sign_of(const struct tail_line *line)
{
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        int rank = -1;
        bool named = strchr(signs[i].text, '#') != NULL;
        if (named ? contains_rank(line, signs[i].text, &rank) : contains(line, signs[i].text))
            return (struct sign){signs[i].kind, rank};
    }
    return (struct sign){SIGN_NONE, -1};
}

static void quote(struct symptom *out, const struct tail_line *line)
{
    char *whole AUTO_FREE = mem_strndup(line->text, line->length);
    char *text AUTO_FREE = exit_text(whole, SYMPTOM_LINE_MAX);
    if (text != NULL) {
        plain_valid(text, strlen(text));
        memcpy(out->line, text, strlen(text) + 1);
    }
}

static enum symptom_kind kind_of(struct sign sign)
{
    static const enum symptom_kind kinds[] = {
        [SIGN_NONE] = SYMPTOM_OWN,        [SIGN_OWN] = SYMPTOM_OWN,
        [SIGN_OPEN] = SYMPTOM_OWN,        [SIGN_LEFT] = SYMPTOM_LOST,
        [SIGN_LOST] = SYMPTOM_LOST,       [SIGN_CLOSED] = SYMPTOM_LOST,
        [SIGN_TIMEOUT] = SYMPTOM_TIMEOUT, [SIGN_SILENT] = SYMPTOM_TIMEOUT};
    return kinds[sign.kind];
}

/* The error that began at `begun_ns` is what `sign` says in `line`. */
static void conclude(struct symptom *out, struct sign sign, int64_t begun_ns,
                     const struct tail_line *line)
{
    bool left = sign.kind == SIGN_LEFT;
    *out = (struct symptom){.kind = kind_of(sign),
                            .of_rank = left || sign.kind == SIGN_LOST || sign.kind == SIGN_TIMEOUT,
                            .left = left,
                            .peer = left ? sign.rank : -1,
                            .when_ns = begun_ns};
    quote(out, line);
}

static void take(struct reader *r, struct sign sign, int64_t begun_ns, const struct tail_line *line)
{
    struct symptom *out = r->out;
    enum symptom_kind kind = kind_of(sign);
    bool chained = r->chained;
    r->chained = r->open = false;
    if (out->kind == SYMPTOM_NONE)
        conclude(out, sign, begun_ns, line);
    else if (symptom_blames_peer(out->kind) ? kind == SYMPTOM_OWN && !chained
                                            : chained && symptom_blames_peer(kind))
        out->kind = SYMPTOM_MIXED;
}

static void take_sign(struct reader *r, struct sign sign, int64_t begun_ns,
                      const struct tail_line *line)
{
    bool first = r->out->kind == SYMPTOM_NONE, open = sign.kind == SIGN_OPEN;
    if (r->open && symptom_blames_peer(kind_of(sign))) {
        conclude(r->out, sign, r->out->when_ns, line); /* what the error before is about */
        r->open = false;
        return;
    }
    /* The parts of one error are all open. */
    if (r->open && open)
        return;
    if (!first && open && symptom_blames_peer(r->out->kind))
        return; /* mostly one more report of the same */
    take(r, sign, begun_ns, line);
    r->open = first && open;
}

/* Neither an error nor a part of one. */
static void ordinary(struct reader *r, int64_t when_ns)
{
    if (r->began && when_ns - r->error_ns > TAIL_SILENCE_NS) {
        *r->out = (struct symptom){.kind = SYMPTOM_NONE, .peer = -1};
        r->began = r->open = r->chained = false;
    }
}

static void note_error(struct reader *r, int64_t when_ns)
{
    r->began = true;
    r->error_ns = when_ns;
}

/* torch.distributed writes "[rank3]: " before each line of a traceback. */
static void skip_label(struct tail_line *line)
{
    const char *end = starts(line, "[rank") ? memmem(line->text, line->length, "]: ", 3) : NULL;
    if (end == NULL)
        return;
    line->length -= (size_t)(end + 3 - line->text);
    line->text = end + 3;
}

static void begin_traceback(struct reader *r, int64_t when_ns)
{
    r->place = r->ignored ? PLACE_IGNORED : PLACE_TRACEBACK;
    r->ignored = false;
    r->begun_ns = when_ns;
}

static void read_outside(struct reader *r, const struct tail_line *line, bool cut)
{
    if (contains(line, TRACEBACK)) {
        begin_traceback(r, line->when_ns);
    } else if (contains(line, "Exception ignored in") || contains(line, "--- Logging error ---")) {
        r->ignored = true;
    } else if (contains(line, "During handling of the above exception") ||
               contains(line, "was the direct cause of the following exception")) {
        r->chained = r->began;
    } else if (cut && !r->began && starts(line, "  File \"")) {
        begin_traceback(r, line->when_ns); /* of which the first lines are gone */
    } else {
        struct sign sign = sign_of(line);
        if (sign.kind == SIGN_NONE) {
            ordinary(r, line->when_ns);
            return;
        }
        take_sign(r, sign, line->when_ns, line);
        note_error(r, line->when_ns);
        return;
    }
    if (r->place == PLACE_TRACEBACK)
        note_error(r, line->when_ns);
}

static void read_traceback(struct reader *r, const struct tail_line *line)
{
    if (line->length == 0 || line->text[0] == ' ' || line->text[0] == '\t' ||
        contains(line, TRACEBACK))
        return;
    if (r->place == PLACE_TRACEBACK) {
        take_sign(r, sign_of(line), r->begun_ns, line);
        note_error(r, line->when_ns);
    }
    r->place = PLACE_OUTSIDE;
}

void symptom_read(const struct tail *tail, int64_t until_ns, struct symptom *out)
{
    *out = (struct symptom){.kind = SYMPTOM_NONE, .peer = -1};
    struct reader r = {.out = out};
    struct tail_walk walk;
    struct tail_line line;
    tail_walk_begin(&walk, tail);
    while (tail_walk_next(&walk, &line) && line.when_ns < until_ns) {
        if (line.elsewhere) {
            ordinary(&r, line.when_ns);
            continue;
        }
        skip_label(&line);
        if (r.place == PLACE_OUTSIDE)
            read_outside(&r, &line, walk.cut);
        else
            read_traceback(&r, &line);
    }
    tail_walk_end(&walk);
}
