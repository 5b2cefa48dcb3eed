/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/memory.h"

#include <string.h>

/* ---- Reading --------------------------------------------------------------------------------- */

#define LOWEST_POINTER 4096
#define POINTER_LIMIT ((uint64_t)1 << 52) /* aarch64; x86-64 has less, and the read fails there */

int memory_read(struct memory *memory, uint64_t address, void *out, size_t length)
{
    size_t cost = length + MEMORY_READ_COST;
    if (address < LOWEST_POINTER || address >= POINTER_LIMIT || cost > memory->budget) {
        memory->budget = cost > memory->budget ? 0 : memory->budget;
        return -1;
    }
    memory->budget -= cost;
    return memory->read(memory->context, address, out, length);
}

int memory_u64(struct memory *memory, uint64_t address, uint64_t *out)
{
    return memory_read(memory, address, out, sizeof(*out));
}

int memory_i32(struct memory *memory, uint64_t address, int32_t *out)
{
    return memory_read(memory, address, out, sizeof(*out));
}

int memory_pointer(struct memory *memory, uint64_t address, uint64_t *out)
{
    uint64_t value = 0;
    if (memory_u64(memory, address, &value) < 0 || (value != 0 && !memory_is_pointer(value)))
        return -1;
    *out = value;
    return 0;
}

bool memory_is_pointer(uint64_t value)
{
    return value >= LOWEST_POINTER && value < POINTER_LIMIT && value % 8 == 0;
}

uint64_t memory_u64_at(const unsigned char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

uint32_t memory_u32_at(const unsigned char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

/* ---- The structs of CPython ------------------------------------------------------------------ */

#define OFFSET_LIMIT (1u << 20)
#define TABLE_SIZE 760 /* of _Py_DebugOffsets in 3.14; that of 3.13 is smaller */
#define COOKIE "xdebugpy"

/* pthread_mutex_t, which stands before it, is larger there. */
#ifdef __aarch64__
#define MUTEX_EXTRA 16
#else
#define MUTEX_EXTRA 0
#endif

#define NONE LAYOUT_NONE

/* What 3.8, 3.9 and 3.10 share. */
#define OLD_MEMBERS                                                                                \
    .runtime_interpreters = 32, .interp_next = 0, .interp_threads = 8, .interp_gil = NONE,         \
    .gil_holder = NONE, .gil_locked = NONE, .thread_next = 8, .thread_interp = 16,                 \
    .thread_frame = 24, .cframe_frame = NONE, .thread_id = 176, .thread_native_id = NONE,          \
    .frame_back = 24, .frame_code = 32, .frame_owner = NONE, .frame_copy = NONE,                   \
    .code_copies = NONE, .code_file = 104, .code_name = 112, .code_qualname = NONE,                \
    .code_first_line = 40, .code_table = 120, .code_start = NONE, OBJECT_MEMBERS, .str_ascii = 48, \
    .str_wide = 72

/* What 3.11 and 3.12 share. */
#define MIDDLE_MEMBERS                                                                   \
    .runtime_interpreters = 40, .interp_next = 0, .thread_next = 8, .thread_interp = 16, \
    .thread_frame = 56, .frame_position = 56, .frame_line = NONE, .frame_trace = NONE,   \
    .frame_copy = NONE, .code_copies = NONE, .code_file = 112, .code_name = 120,         \
    .code_qualname = 128, .code_table = 136, OBJECT_MEMBERS

#define OBJECT_MEMBERS                                                                       \
    .object_type = 8, .type_name = 24, .bytes_size = 16, .bytes_data = 32, .str_length = 16, \
    .str_state = 32

static const struct python_layout constants[] = {
    {.minor = 8,
     OLD_MEMBERS,
     .runtime_current = 1368 + MUTEX_EXTRA,
     .frame_position = 104,
     .frame_line = 108,
     .frame_trace = 80},
    {.minor = 9,
     OLD_MEMBERS,
     .runtime_current = 568 + MUTEX_EXTRA,
     .frame_position = 104,
     .frame_line = 108,
     .frame_trace = 80},
    {.minor = 10,
     OLD_MEMBERS,
     .runtime_current = 568 + MUTEX_EXTRA,
     .frame_position = 96,
     .frame_line = 100,
     .frame_trace = NONE},
    {.minor = 11,
     MIDDLE_MEMBERS,
     .runtime_current = 576 + MUTEX_EXTRA,
     .interp_threads = 16,
     .interp_gil = NONE,
     .gil_holder = NONE,
     .gil_locked = NONE,
     .cframe_frame = 8,
     .thread_id = 152,
     .thread_native_id = 160,
     .frame_back = 48,
     .frame_code = 32,
     .frame_owner = 69,
     .code_first_line = 72,
     .code_start = 184,
     .str_ascii = 48,
     .str_wide = 72},
    {.minor = 12,
     MIDDLE_MEMBERS,
     .runtime_current = NONE,
     .interp_threads = 72,
     .interp_gil = 384,
     .gil_holder = 8,
     .gil_locked = 16,
     .cframe_frame = 0,
     .thread_id = 136,
     .thread_native_id = 144,
     .frame_back = 8,
     .frame_code = 0,
     .frame_owner = 70,
     .code_first_line = 68,
     .code_start = 192,
     .str_ascii = 40,
     .str_wide = 56},
};

/* Where _Py_DebugOffsets says where a member is, in 3.13 and 3.14, and where it says how large the
 * struct of the member is. Offset 0 holds the cookie: "not in this version". */
static const struct described {
    size_t member;
    uint16_t at[2], size_at[2];
} described[] = {
#define AT(name, at13, size13, at14, size14)                \
    {                                                       \
        offsetof(struct python_layout, name), {at13, at14}, \
        {                                                   \
            size13, size14                                  \
        }                                                   \
    }
    AT(runtime_interpreters, 40, 24, 40, 24),
    AT(interp_next, 64, 48, 64, 48),
    AT(interp_threads, 72, 48, 72, 48),
    AT(interp_gil, 112, 48, 120, 48),
    AT(gil_locked, 136, 48, 144, 48),
    AT(gil_holder, 144, 48, 152, 48),
    AT(thread_next, 168, 152, 192, 176),
    AT(thread_interp, 176, 152, 200, 176),
    AT(thread_frame, 184, 152, 208, 176),
    AT(thread_id, 192, 152, 216, 176),
    AT(thread_native_id, 200, 152, 224, 176),
    AT(frame_back, 232, 224, 256, 248),
    AT(frame_code, 240, 224, 264, 248),
    AT(frame_position, 248, 224, 272, 248),
    AT(frame_owner, 264, 224, 288, 248),
    AT(frame_copy, 0, 0, 304, 248),
    AT(code_file, 280, 272, 320, 312),
    AT(code_name, 288, 272, 328, 312),
    AT(code_qualname, 296, 272, 336, 312),
    AT(code_table, 304, 272, 344, 312),
    AT(code_first_line, 312, 272, 352, 312),
    AT(code_start, 344, 272, 384, 312),
    AT(code_copies, 0, 0, 392, 312),
    AT(object_type, 360, 352, 408, 400),
    AT(type_name, 376, 368, 424, 416),
    AT(bytes_size, 520, 512, 600, 592),
    AT(bytes_data, 528, 512, 608, 592),
    AT(str_state, 544, 536, 624, 616),
    AT(str_length, 552, 536, 632, 616),
    AT(str_ascii, 560, 0, 640, 0), /* itself the size of a struct */
#undef AT
};

static int take_described(const unsigned char *table, int which, const struct described *one,
                          struct python_layout *out)
{
    uint32_t offset = LAYOUT_NONE;
    if (one->at[which] != 0) {
        uint64_t value = memory_u64_at(table + one->at[which]);
        uint64_t size =
            one->size_at[which] != 0 ? memory_u64_at(table + one->size_at[which]) : OFFSET_LIMIT;
        if (value >= size || size > OFFSET_LIMIT)
            return -1;
        offset = (uint32_t)value;
    }
    memcpy((char *)out + one->member, &offset, sizeof(offset));
    return 0;
}

static int read_described(int minor, struct memory *memory, uint64_t runtime,
                          struct python_layout *out)
{
    unsigned char table[TABLE_SIZE] = {0};
    int which = minor - 13;
    if (memory_read(memory, runtime, table, which == 0 ? 584 : TABLE_SIZE) < 0 ||
        memcmp(table, COOKIE, strlen(COOKIE)) != 0 ||
        memory_u64_at(table + 8) >> 16 != (uint64_t)(0x0300 | minor))
        return -1;
    *out = (struct python_layout){.minor = minor, .free_threaded = memory_u64_at(table + 16) == 1};
    if (out->free_threaded && minor == 13)
        return -1; /* its strings differ, in a way that we have not seen */
    for (size_t i = 0; i < sizeof(described) / sizeof(described[0]); i++) {
        if (take_described(table, which, &described[i], out) < 0)
            return -1;
    }
    /* The GIL that is embedded in the interpreter; another one may be in use, at interp_gil. */
    uint64_t gil = memory_u64_at(table + (which == 0 ? 120 : 128));
    if (!out->free_threaded && (gil > out->gil_locked || gil > out->gil_holder))
        return -1;
    out->gil_locked -= (uint32_t)gil;
    out->gil_holder -= (uint32_t)gil;
    /* In ordinary builds these two are 0, where other members are. */
    if (!out->free_threaded || out->code_copies == 0)
        out->frame_copy = out->code_copies = LAYOUT_NONE;
    out->str_wide = out->str_ascii + 16;
    out->runtime_current = out->cframe_frame = LAYOUT_NONE;
    out->frame_line = out->frame_trace = LAYOUT_NONE;
    return python_layout_frame_size(out) <= 4096 && python_layout_code_size(out) <= 4096 ? 0 : -1;
}

int python_layout_read(int minor, struct memory *memory, uint64_t runtime,
                       struct python_layout *out)
{
    if (minor == 13 || minor == 14)
        return read_described(minor, memory, runtime, out);
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (constants[i].minor == minor) {
            *out = constants[i];
            return 0;
        }
    }
    return -1;
}

static uint32_t end_of(const uint32_t *offsets, size_t count)
{
    uint32_t end = 0;
    for (size_t i = 0; i < count; i++) {
        if (offsets[i] != LAYOUT_NONE && offsets[i] + 8 > end)
            end = offsets[i] + 8;
    }
    return end;
}

uint32_t python_layout_frame_size(const struct python_layout *layout)
{
    const uint32_t offsets[] = {layout->frame_back, layout->frame_code,  layout->frame_position,
                                layout->frame_line, layout->frame_trace, layout->frame_owner,
                                layout->frame_copy};
    return end_of(offsets, sizeof(offsets) / sizeof(offsets[0]));
}

uint32_t python_layout_code_size(const struct python_layout *layout)
{
    const uint32_t offsets[] = {layout->code_file,       layout->code_name,  layout->code_qualname,
                                layout->code_first_line, layout->code_table, layout->code_copies,
                                layout->object_type};
    return end_of(offsets, sizeof(offsets) / sizeof(offsets[0]));
}
