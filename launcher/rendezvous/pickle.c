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
    const uint8_t *data;   /* of DATA_n; `number` is its length */
    enum pickle_kind kind; /* of the opcode's value, or of the container that it changes */
    size_t count;          /* of values that it takes off the stack; ABOVE_MARK: all of these */
};

#define ABOVE_MARK SIZE_MAX

typedef int opcode_fn(struct reader *reader, struct operand operand);

static int new_value(struct reader *reader, struct pickle_value value)
{
    struct pickle *pickle = reader->pickle;
    if (pickle->count == PICKLE_VALUES_MAX || reader->depth == PICKLE_VALUES_MAX)
        return error_set(reader->err, "it has more than %d values", PICKLE_VALUES_MAX);
    pickle->values = mem_one_more(pickle->values, pickle->count, &pickle->room, sizeof(value));
    pickle->values[pickle->count] = value;
    reader->stack[reader->depth++] = (uint32_t)pickle->count++;
    return 0;
}

/* How many values are above the innermost mark; only count_of() looks below it. */
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

/* How many values an opcode takes, which are still on the stack. */
static int count_of(struct reader *reader, struct operand operand, size_t *count)
{
    *count = operand.count;
    if (operand.count != ABOVE_MARK)
        return 0;
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

/* The uppermost values go into the container below them. */
static int op_add(struct reader *reader, struct operand operand)
{
    size_t count;
    if (count_of(reader, operand, &count) < 0 || need(reader, count + 1) < 0)
        return -1;
    uint32_t below = reader->stack[reader->depth - count - 1];
    struct pickle_value *container = &reader->pickle->values[below];
    if (container->kind != operand.kind)
        return error_set(reader->err, "it adds an item to a value that is not a %s",
                         operand.kind == PICKLE_LIST ? "list" : "dictionary");
    if (operand.kind == PICKLE_DICT && count % 2 != 0)
        return error_set(reader->err, "a key of a dictionary has no value");
    return add_items(reader, container, count);
}

static int op_tuple(struct reader *reader, struct operand operand)
{
    struct pickle_value value = {.kind = PICKLE_TUPLE};
    size_t count;
    if (count_of(reader, operand, &count) < 0 || need(reader, count) < 0)
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

static int op_data(struct reader *reader, struct operand operand)
{
    return new_value(reader, (struct pickle_value){.kind = operand.kind,
                                                   .data = operand.data,
                                                   .length = operand.number});
}

static int op_empty(struct reader *reader, struct operand operand)
{
    return new_value(reader, (struct pickle_value){.kind = operand.kind});
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
    enum pickle_kind kind;
    size_t count;
};

#define STOP 0x2e

static const struct opcode opcodes[256] = {
    [0x80] = {op_proto, BYTES_1},                          /* PROTO */
    [0x95] = {op_frame, BYTES_8},                          /* FRAME */
    ['('] = {op_mark, NOTHING},                            /* MARK */
    ['K'] = {op_unsigned, BYTES_1},                        /* BININT1 */
    ['M'] = {op_unsigned, BYTES_2},                        /* BININT2 */
    ['J'] = {op_signed, BYTES_4},                          /* BININT */
    [0x8c] = {op_data, DATA_1, PICKLE_TEXT},               /* SHORT_BINUNICODE */
    ['X'] = {op_data, DATA_4, PICKLE_TEXT},                /* BINUNICODE */
    ['C'] = {op_data, DATA_1, PICKLE_BYTES},               /* SHORT_BINBYTES */
    ['B'] = {op_data, DATA_4, PICKLE_BYTES},               /* BINBYTES */
    ['}'] = {op_empty, NOTHING, PICKLE_DICT},              /* EMPTY_DICT */
    [']'] = {op_empty, NOTHING, PICKLE_LIST},              /* EMPTY_LIST */
    [')'] = {op_tuple, NOTHING, PICKLE_TUPLE, 0},          /* EMPTY_TUPLE */
    [0x85] = {op_tuple, NOTHING, PICKLE_TUPLE, 1},         /* TUPLE1 */
    [0x86] = {op_tuple, NOTHING, PICKLE_TUPLE, 2},         /* TUPLE2 */
    [0x87] = {op_tuple, NOTHING, PICKLE_TUPLE, 3},         /* TUPLE3 */
    ['t'] = {op_tuple, NOTHING, PICKLE_TUPLE, ABOVE_MARK}, /* TUPLE */
    ['a'] = {op_add, NOTHING, PICKLE_LIST, 1},             /* APPEND */
    ['e'] = {op_add, NOTHING, PICKLE_LIST, ABOVE_MARK},    /* APPENDS */
    ['s'] = {op_add, NOTHING, PICKLE_DICT, 2},             /* SETITEM */
    ['u'] = {op_add, NOTHING, PICKLE_DICT, ABOVE_MARK},    /* SETITEMS */
    [0x94] = {op_memoize, NOTHING},                        /* MEMOIZE */
    ['q'] = {op_put, BYTES_1},                             /* BINPUT */
    ['r'] = {op_put, BYTES_4},                             /* LONG_BINPUT */
    ['h'] = {op_get, BYTES_1},                             /* BINGET */
    ['j'] = {op_get, BYTES_4},                             /* LONG_BINGET */
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
        struct operand operand = {.kind = opcode->kind, .count = opcode->count};
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
