/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct reader {
    const uint8_t *at, *end;
    struct pickle *pickle;
    uint32_t stack[PICKLE_VALUES_MAX];
    size_t depth;
    size_t marks[PICKLE_MARKS_MAX]; /* depths of the stack */
    size_t mark_count;
    uint32_t memo[PICKLE_VALUES_MAX]; /* 0: nothing there, else the value's index + 1 */
    size_t memo_count;
    size_t item_count; /* in all containers */
    struct error *err;
};

/* What follows an opcode. DATA_n: n bytes of a length, and so many bytes. */
enum argument { NOTHING, BYTES_1, BYTES_2, BYTES_4, BYTES_8, DATA_1, DATA_4 };

struct operand {
    uint64_t number;
    const uint8_t *data; /* of DATA_n; `number` is its length */
};

typedef int opcode_fn(struct reader *reader, struct operand operand);

static int new_value(struct reader *reader, struct pickle_value value)
{
    struct pickle *pickle = reader->pickle;
    if (pickle->count == PICKLE_VALUES_MAX || reader->depth == PICKLE_VALUES_MAX)
        return error_set(reader->err, "it has more than %d values", PICKLE_VALUES_MAX);
    if (pickle->count == pickle->room) {
        pickle->room = pickle->room * 2 + 16;
        pickle->values = mem_resize_array(pickle->values, pickle->room, sizeof(value));
    }
    pickle->values[pickle->count] = value;
    reader->stack[reader->depth++] = (uint32_t)pickle->count++;
    return 0;
}

/* How many values are above the innermost mark; only take_mark() looks below it. */
static size_t above_mark(const struct reader *reader)
{
    return reader->depth -
           (reader->mark_count > 0 ? reader->marks[reader->mark_count - 1] : (size_t)0);
}

static int need(const struct reader *reader, size_t count)
{
    if (above_mark(reader) < count)
        return error_set(reader->err, "a value is missing on its stack");
    return 0;
}

/* `*count` values stood above the mark, and are still on the stack. */
static int take_mark(struct reader *reader, size_t *count)
{
    if (reader->mark_count == 0)
        return error_set(reader->err, "a mark is missing on its stack");
    *count = above_mark(reader);
    reader->mark_count--;
    return 0;
}

static int add_items(struct reader *reader, struct pickle_value *container, size_t count)
{
    /* Lists of lists cannot multiply what is there: an item costs at least a byte. */
    if (reader->item_count + count > PICKLE_SIZE_MAX)
        return error_set(reader->err, "its containers are too long");
    reader->item_count += count;
    if (container->length + count > container->room) {
        container->room = container->length * 2 + count;
        container->items =
            mem_resize_array(container->items, container->room, sizeof(*container->items));
    }
    if (count > 0)
        memcpy(container->items + container->length, reader->stack + reader->depth - count,
               count * sizeof(*container->items));
    container->length += count;
    reader->depth -= count;
    return 0;
}

/* The uppermost `count` values go into the container below them. */
static int into_container(struct reader *reader, size_t count, enum pickle_kind kind)
{
    if (need(reader, count + 1) < 0)
        return -1;
    uint32_t below = reader->stack[reader->depth - count - 1];
    struct pickle_value *container = &reader->pickle->values[below];
    if (container->kind != kind)
        return error_set(reader->err, "it adds an item to a value that is not a %s",
                         kind == PICKLE_LIST ? "list" : "dictionary");
    if (kind == PICKLE_DICT && count % 2 != 0)
        return error_set(reader->err, "a key of a dictionary has no value");
    return add_items(reader, container, count);
}

static int tuple_of(struct reader *reader, size_t count)
{
    struct pickle_value value = {.kind = PICKLE_TUPLE};
    if (need(reader, count) < 0)
        return -1;
    if (add_items(reader, &value, count) == 0 && new_value(reader, value) == 0)
        return 0;
    free(value.items);
    return -1;
}

static int op_proto(struct reader *reader, struct operand operand)
{
    if (operand.number < 3 || operand.number > 5)
        return error_set(reader->err, "its protocol is %d, not 3, 4 or 5", (int)operand.number);
    return 0;
}

static int op_frame(struct reader *reader, struct operand operand)
{
    if (operand.number > (uint64_t)(reader->end - reader->at))
        return error_set(reader->err, "it is cut off inside a frame");
    return 0;
}

static int op_mark(struct reader *reader, struct operand operand)
{
    (void)operand;
    if (reader->mark_count == PICKLE_MARKS_MAX)
        return error_set(reader->err, "it is nested too deeply");
    reader->marks[reader->mark_count++] = reader->depth;
    return 0;
}

static int op_unsigned(struct reader *reader, struct operand operand)
{
    return new_value(reader, (struct pickle_value){.number = (int64_t)operand.number});
}

static int op_signed(struct reader *reader, struct operand operand)
{
    int64_t number = (int64_t)operand.number;
    return new_value(
        reader,
        (struct pickle_value){.number = number > INT32_MAX ? number - (INT64_C(1) << 32) : number});
}

static int op_text(struct reader *reader, struct operand operand)
{
    return new_value(
        reader,
        (struct pickle_value){.kind = PICKLE_TEXT, .data = operand.data, .length = operand.number});
}

static int op_bytes(struct reader *reader, struct operand operand)
{
    return new_value(reader, (struct pickle_value){.kind = PICKLE_BYTES,
                                                   .data = operand.data,
                                                   .length = operand.number});
}

static int op_empty_dict(struct reader *reader, struct operand operand)
{
    (void)operand;
    return new_value(reader, (struct pickle_value){.kind = PICKLE_DICT});
}

static int op_empty_list(struct reader *reader, struct operand operand)
{
    (void)operand;
    return new_value(reader, (struct pickle_value){.kind = PICKLE_LIST});
}

static int op_empty_tuple(struct reader *reader, struct operand operand)
{
    (void)operand;
    return tuple_of(reader, 0);
}

static int op_tuple1(struct reader *reader, struct operand operand)
{
    (void)operand;
    return tuple_of(reader, 1);
}

static int op_tuple2(struct reader *reader, struct operand operand)
{
    (void)operand;
    return tuple_of(reader, 2);
}

static int op_tuple3(struct reader *reader, struct operand operand)
{
    (void)operand;
    return tuple_of(reader, 3);
}

static int op_tuple(struct reader *reader, struct operand operand)
{
    (void)operand;
    size_t count = 0;
    return take_mark(reader, &count) < 0 ? -1 : tuple_of(reader, count);
}

static int op_append(struct reader *reader, struct operand operand)
{
    (void)operand;
    return into_container(reader, 1, PICKLE_LIST);
}

static int op_appends(struct reader *reader, struct operand operand)
{
    (void)operand;
    size_t count = 0;
    return take_mark(reader, &count) < 0 ? -1 : into_container(reader, count, PICKLE_LIST);
}

static int op_setitem(struct reader *reader, struct operand operand)
{
    (void)operand;
    return into_container(reader, 2, PICKLE_DICT);
}

static int op_setitems(struct reader *reader, struct operand operand)
{
    (void)operand;
    size_t count = 0;
    return take_mark(reader, &count) < 0 ? -1 : into_container(reader, count, PICKLE_DICT);
}

static int op_put(struct reader *reader, struct operand operand)
{
    if (need(reader, 1) < 0)
        return -1;
    if (operand.number >= PICKLE_VALUES_MAX)
        return error_set(reader->err, "it memorizes too many values");
    if (reader->memo[operand.number] == 0)
        reader->memo_count++;
    reader->memo[operand.number] = reader->stack[reader->depth - 1] + 1;
    return 0;
}

static int op_memoize(struct reader *reader, struct operand operand)
{
    operand.number = reader->memo_count;
    return op_put(reader, operand);
}

static int op_get(struct reader *reader, struct operand operand)
{
    if (operand.number >= PICKLE_VALUES_MAX || reader->memo[operand.number] == 0)
        return error_set(reader->err, "it uses a value that it has not memorized");
    if (reader->depth == PICKLE_VALUES_MAX)
        return error_set(reader->err, "it has more than %d values", PICKLE_VALUES_MAX);
    reader->stack[reader->depth++] = reader->memo[operand.number] - 1;
    return 0;
}

struct opcode {
    opcode_fn *run;
    enum argument argument;
};

#define STOP 0x2e

static const struct opcode opcodes[256] = {
    [0x80] = {op_proto, BYTES_1},      /* PROTO */
    [0x95] = {op_frame, BYTES_8},      /* FRAME */
    ['('] = {op_mark, NOTHING},        /* MARK */
    ['K'] = {op_unsigned, BYTES_1},    /* BININT1 */
    ['M'] = {op_unsigned, BYTES_2},    /* BININT2 */
    ['J'] = {op_signed, BYTES_4},      /* BININT */
    [0x8c] = {op_text, DATA_1},        /* SHORT_BINUNICODE */
    ['X'] = {op_text, DATA_4},         /* BINUNICODE */
    ['C'] = {op_bytes, DATA_1},        /* SHORT_BINBYTES */
    ['B'] = {op_bytes, DATA_4},        /* BINBYTES */
    ['}'] = {op_empty_dict, NOTHING},  /* EMPTY_DICT */
    [']'] = {op_empty_list, NOTHING},  /* EMPTY_LIST */
    [')'] = {op_empty_tuple, NOTHING}, /* EMPTY_TUPLE */
    [0x85] = {op_tuple1, NOTHING},     /* TUPLE1 */
    [0x86] = {op_tuple2, NOTHING},     /* TUPLE2 */
    [0x87] = {op_tuple3, NOTHING},     /* TUPLE3 */
    ['t'] = {op_tuple, NOTHING},       /* TUPLE */
    ['a'] = {op_append, NOTHING},      /* APPEND */
    ['e'] = {op_appends, NOTHING},     /* APPENDS */
    ['s'] = {op_setitem, NOTHING},     /* SETITEM */
    ['u'] = {op_setitems, NOTHING},    /* SETITEMS */
    [0x94] = {op_memoize, NOTHING},    /* MEMOIZE */
    ['q'] = {op_put, BYTES_1},         /* BINPUT */
    ['r'] = {op_put, BYTES_4},         /* LONG_BINPUT */
    ['h'] = {op_get, BYTES_1},         /* BINGET */
    ['j'] = {op_get, BYTES_4},         /* LONG_BINGET */
};

static int take_operand(struct reader *reader, enum argument argument, struct operand *operand)
{
    static const size_t widths[] = {[NOTHING] = 0, [BYTES_1] = 1, [BYTES_2] = 2, [BYTES_4] = 4,
                                    [BYTES_8] = 8, [DATA_1] = 1,  [DATA_4] = 4};
    size_t width = widths[argument];
    if ((size_t)(reader->end - reader->at) < width)
        return error_set(reader->err, "it is cut off");
    for (size_t i = 0; i < width; i++)
        operand->number |= (uint64_t)reader->at[i] << (8 * i);
    reader->at += width;
    if (argument != DATA_1 && argument != DATA_4)
        return 0;
    if (operand->number > (uint64_t)(reader->end - reader->at))
        return error_set(reader->err, "it is cut off");
    operand->data = reader->at;
    reader->at += operand->number;
    return 0;
}

static int stop(struct reader *reader)
{
    if (reader->depth != 1 || reader->mark_count != 0)
        return error_set(reader->err, "it does not end with one value");
    if (reader->at != reader->end)
        return error_set(reader->err, "bytes follow its end");
    reader->pickle->root = reader->stack[0];
    return 0;
}

static int run(struct reader *reader)
{
    while (reader->at < reader->end) {
        uint8_t code = *reader->at++;
        if (code == STOP)
            return stop(reader);
        const struct opcode *opcode = &opcodes[code];
        struct operand operand = {0};
        if (opcode->run == NULL)
            return error_set(reader->err, "opcode 0x%02x is not one that is expected here", code);
        if (take_operand(reader, opcode->argument, &operand) < 0 ||
            opcode->run(reader, operand) < 0)
            return -1;
    }
    return error_set(reader->err, "it is cut off");
}

int pickle_read(const uint8_t *bytes, size_t length, struct pickle *out, struct error *err)
{
    *out = (struct pickle){.values = NULL};
    if (length > PICKLE_SIZE_MAX)
        return error_set(err, "it has more than %d bytes", PICKLE_SIZE_MAX);
    if (length < 2 || bytes[0] != 0x80)
        return error_set(err, "it does not begin as a pickle");
    struct reader *reader AUTO_FREE = mem_alloc(sizeof(*reader));
    reader->at = bytes;
    reader->end = bytes + length;
    reader->pickle = out;
    reader->err = err;
    if (run(reader) == 0)
        return 0;
    pickle_destroy(out);
    return -1;
}

void pickle_destroy(struct pickle *pickle)
{
    for (size_t i = 0; i < pickle->count; i++)
        free(pickle->values[i].items);
    free(pickle->values);
    *pickle = (struct pickle){.values = NULL};
}
