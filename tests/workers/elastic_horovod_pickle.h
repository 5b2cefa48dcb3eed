/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pickles of Horovod's elastic layer: written byte for byte as Python writes them, and read by
 * a small stack machine that knows the opcodes of the two requests, in the short form and in that
 * of the real launcher, and takes nothing else.
 */
#pragma once

#include "worker.h"

enum { PICKLE_MAX = 4096, PICKLE_TEXT = 128, PICKLE_DEPTH = 32, PICKLE_HEAD = 11 };

#define PICKLE_NETWORK "horovod.runner.common.util.network"
#define PICKLE_WORKER "horovod.runner.elastic.worker"

/* Writing. The head (protocol, frame length) is filled in by pickle_close(). */
struct pickle {
    unsigned char bytes[PICKLE_MAX];
    size_t length;
};

static void pickle_put(struct pickle *pickle, const void *bytes, size_t length)
{
    if (pickle->length + length > PICKLE_MAX)
        abort();
    memcpy(pickle->bytes + pickle->length, bytes, length);
    pickle->length += length;
}

static void pickle_ops(struct pickle *pickle, const char *ops)
{
    pickle_put(pickle, ops, strlen(ops));
}

static void pickle_open(struct pickle *pickle)
{
    pickle->length = PICKLE_HEAD;
}

static void pickle_close(struct pickle *pickle)
{
    pickle_ops(pickle, ".");
    memcpy(pickle->bytes, "\x80\x05\x95", 3);
    for (int i = 0; i < 8; i++)
        pickle->bytes[3 + i] = (unsigned char)((uint64_t)(pickle->length - PICKLE_HEAD) >> 8 * i);
}

/* SHORT_BINUNICODE, MEMOIZE */
static void pickle_string(struct pickle *pickle, const char *text)
{
    unsigned char head[2] = {0x8c, (unsigned char)strlen(text)};
    pickle_put(pickle, head, sizeof(head));
    pickle_ops(pickle, text);
    pickle_ops(pickle, "\x94");
}

static void pickle_bytes(struct pickle *pickle, const void *bytes, size_t length)
{
    unsigned char head[2] = {'C', (unsigned char)length};
    pickle_put(pickle, head, sizeof(head));
    pickle_put(pickle, bytes, length);
    pickle_ops(pickle, "\x94");
}

static void pickle_port(struct pickle *pickle, uint16_t port)
{
    unsigned char wide[3] = {'M', (unsigned char)port, (unsigned char)(port >> 8)};
    unsigned char narrow[2] = {'K', (unsigned char)port};
    pickle_put(pickle, port < 256 ? narrow : wide, port < 256 ? sizeof(narrow) : sizeof(wide));
}

/* An object without attributes yet: STACK_GLOBAL, MEMOIZE, EMPTY_TUPLE, NEWOBJ, MEMOIZE. */
static void pickle_object(struct pickle *pickle, const char *module, const char *name)
{
    pickle_string(pickle, module);
    pickle_string(pickle, name);
    pickle_ops(pickle, "\x93\x94)\x81\x94");
}

/* Reading. */
enum value_kind {
    VALUE_MARK,
    VALUE_TEXT,
    VALUE_INT,
    VALUE_GLOBAL,
    VALUE_TUPLE,
    VALUE_DICT,
    VALUE_OBJECT
};

struct value {
    enum value_kind kind;
    int64_t number;         /* of an INT; of a TUPLE: how many */
    char text[PICKLE_TEXT]; /* of a TEXT; of a GLOBAL or OBJECT: its name; of a pair: the text in it
                             */
    char module[PICKLE_TEXT];
    int64_t timestamp, res; /* of a DICT or OBJECT; -1: not there */
};

struct unpickler {
    const unsigned char *at, *end;
    struct value stack[PICKLE_DEPTH], memo[PICKLE_DEPTH];
    int depth, memoized;
    const char *problem; /* NULL: none so far */
};

static bool refuse(struct unpickler *p, const char *why)
{
    p->problem = p->problem != NULL ? p->problem : why;
    return false;
}

static int64_t little_endian(struct unpickler *p, size_t length)
{
    int64_t value = 0;
    if ((size_t)(p->end - p->at) < length) {
        refuse(p, "it ends inside a number");
        return 0;
    }
    for (size_t i = 0; i < length; i++)
        value |= (int64_t)p->at[i] << 8 * i;
    p->at += length;
    return value;
}

static bool push(struct unpickler *p, struct value value)
{
    if (p->depth == PICKLE_DEPTH)
        return refuse(p, "it is too deep");
    p->stack[p->depth++] = value;
    return true;
}

/* The n-th from the top, which must be of this kind. */
static struct value *peek(struct unpickler *p, int n, enum value_kind kind)
{
    static struct value nothing;
    if (p->depth <= n || p->stack[p->depth - 1 - n].kind != kind) {
        refuse(p, "an operation finds something else on the stack");
        return &nothing;
    }
    return &p->stack[p->depth - 1 - n];
}

static bool read_text(struct unpickler *p)
{
    size_t length = (size_t)little_endian(p, 1);
    struct value value = {.kind = VALUE_TEXT};
    if ((size_t)(p->end - p->at) < length || length >= PICKLE_TEXT)
        return refuse(p, "a text is cut off or too long");
    memcpy(value.text, p->at, length);
    p->at += length;
    return push(p, value);
}

static bool make_global(struct unpickler *p)
{
    struct value made = {.kind = VALUE_GLOBAL};
    snprintf(made.text, sizeof(made.text), "%s", peek(p, 0, VALUE_TEXT)->text);
    snprintf(made.module, sizeof(made.module), "%s", peek(p, 1, VALUE_TEXT)->text);
    if (p->problem != NULL)
        return false;
    p->depth -= 2;
    return push(p, made);
}

static bool make_object(struct unpickler *p)
{
    struct value made = *peek(p, 1, VALUE_GLOBAL);
    if (peek(p, 0, VALUE_TUPLE)->number != 0)
        return refuse(p, "NEWOBJ with arguments");
    made.kind = VALUE_OBJECT;
    made.timestamp = made.res = -1;
    p->depth -= 2;
    return p->problem == NULL && push(p, made);
}

/* getattr(HostUpdateResult, "added"), or HostUpdateResult(2): what the enum pickles to. */
static bool reduce(struct unpickler *p)
{
    static const char *const names[4] = {"no_update", "removed", "added", "mixed"};
    struct value tuple = *peek(p, 0, VALUE_TUPLE), call = *peek(p, 1, VALUE_GLOBAL);
    struct value made = {.kind = VALUE_INT, .number = -1};
    bool by_name = strcmp(call.module, "builtins") == 0 && strcmp(call.text, "getattr") == 0;
    if (strcmp(by_name ? tuple.module : call.text, "HostUpdateResult") != 0)
        return refuse(p, "REDUCE of something that is no HostUpdateResult");
    for (int i = 0; i < 4; i++) {
        if (by_name ? strcmp(tuple.text, names[i]) == 0 : tuple.res == i)
            made.number = i;
    }
    if (made.number < 0)
        return refuse(p, "no such HostUpdateResult");
    p->depth -= 2;
    return p->problem == NULL && push(p, made);
}

static bool make_tuple(struct unpickler *p, int count)
{
    struct value made = {.kind = VALUE_TUPLE, .number = count, .res = -1};
    if (count == 2) {
        memcpy(made.text, peek(p, 0, VALUE_TEXT)->text, PICKLE_TEXT);
        memcpy(made.module, peek(p, 1, VALUE_GLOBAL)->text, PICKLE_TEXT);
    } else if (count == 1) {
        made.res = peek(p, 0, VALUE_INT)->number;
    }
    p->depth -= p->problem == NULL ? count : 0;
    return p->problem == NULL && push(p, made);
}

static bool set_items(struct unpickler *p)
{
    int mark = p->depth - 1;
    while (mark >= 0 && p->stack[mark].kind != VALUE_MARK)
        mark--;
    if (mark < 1 || p->stack[mark - 1].kind != VALUE_DICT || (p->depth - mark) % 2 != 1)
        return refuse(p, "SETITEMS without a dictionary and pairs");
    for (int i = mark + 1; i < p->depth; i += 2) {
        struct value *key = &p->stack[i], *value = &p->stack[i + 1], *dict = &p->stack[mark - 1];
        if (key->kind != VALUE_TEXT || value->kind != VALUE_INT)
            return refuse(p, "an attribute that is no number");
        if (strcmp(key->text, "timestamp") == 0)
            dict->timestamp = value->number;
        else if (strcmp(key->text, "res") == 0)
            dict->res = value->number;
        else
            return refuse(p, "an unknown attribute");
    }
    p->depth = mark;
    return true;
}

static bool build(struct unpickler *p)
{
    struct value dict = *peek(p, 0, VALUE_DICT), *object = peek(p, 1, VALUE_OBJECT);
    if (p->problem != NULL)
        return false;
    object->timestamp = dict.timestamp;
    object->res = dict.res;
    p->depth--;
    return true;
}

static bool memoize(struct unpickler *p)
{
    if (p->depth == 0 || p->memoized == PICKLE_DEPTH)
        return refuse(p, "nothing to memoize, or too much");
    p->memo[p->memoized++] = p->stack[p->depth - 1];
    return true;
}

static bool recall(struct unpickler *p)
{
    int64_t which = little_endian(p, 1);
    if (which >= p->memoized)
        return refuse(p, "BINGET of what was not kept");
    return push(p, p->memo[which]);
}

static bool frame(struct unpickler *p)
{
    int64_t length = little_endian(p, 8);
    return length == p->end - p->at || refuse(p, "the frame has another length");
}

static bool number(struct unpickler *p, size_t length)
{
    struct value value = {.kind = VALUE_INT, .number = little_endian(p, length)};
    if (length == 4)
        value.number = (int32_t)value.number;
    return push(p, value);
}

static bool long_number(struct unpickler *p)
{
    int64_t length = little_endian(p, 1);
    if (length < 1 || length > 8)
        return refuse(p, "LONG1 of a strange length");
    return number(p, (size_t)length);
}

static bool step(struct unpickler *p, unsigned char op)
{
    switch (op) {
    case 0x80: return little_endian(p, 1) >= 4 || refuse(p, "an old protocol");
    case 0x95: return frame(p);
    case 0x8c: return read_text(p);
    case 0x94: return memoize(p);
    case 0x93: return make_global(p);
    case ')': return make_tuple(p, 0);
    case 0x85: return make_tuple(p, 1);
    case 0x86: return make_tuple(p, 2);
    case 0x81: return make_object(p);
    case '}': return push(p, (struct value){.kind = VALUE_DICT, .timestamp = -1, .res = -1});
    case '(': return push(p, (struct value){.kind = VALUE_MARK});
    case 'J': return number(p, 4);
    case 'M': return number(p, 2);
    case 'K': return number(p, 1);
    case 0x8a: return long_number(p);
    case 'h': return recall(p);
    case 'R': return reduce(p);
    case 'u': return set_items(p);
    case 'b': return build(p);
    default: return refuse(p, "an operation that does not belong here");
    }
}

/* One object of the class that is expected to be there; what is wrong with it, or NULL. */
static const char *unpickle(const void *bytes, size_t length, struct value *object)
{
    struct unpickler p = {.at = bytes, .end = (const unsigned char *)bytes + length};
    if (length < 3 || p.at[0] != 0x80)
        return "it does not begin as a pickle";
    while (p.at < p.end) {
        unsigned char op = *p.at++;
        if (op == '.')
            break;
        if (!step(&p, op))
            return p.problem;
    }
    if (p.at != p.end || p.end[-1] != '.' || p.depth != 1 || p.stack[0].kind != VALUE_OBJECT)
        return "it is not one object";
    *object = p.stack[0];
    return NULL;
}
