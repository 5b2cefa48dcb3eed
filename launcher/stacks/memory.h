/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of another process, and where the structs of CPython have their members there. Pure:
 * the memory is a function that reads bytes at an address, and an image in tests. Nothing in it is
 * trusted, and it can change between two reads.
 *
 * All decoders together have a budget. When it is used up, every read fails. So a hostile image
 * costs a bounded time, whatever it makes the decoders follow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_BUDGET ((size_t)64 << 20)

struct memory {
    /* Reads exactly `length` bytes. -1: it cannot. */
    int (*read)(void *context, uint64_t address, void *out, size_t length);
    void *context;
    size_t budget; /* bytes; each read costs its length and MEMORY_READ_COST */
};

#define MEMORY_READ_COST 64

/* All return -1 when the memory cannot be read. `*out` is then unchanged or zero. */
int memory_read(struct memory *memory, uint64_t address, void *out, size_t length);
int memory_u64(struct memory *memory, uint64_t address, uint64_t *out);
int memory_i32(struct memory *memory, uint64_t address, int32_t *out);
/* A pointer to a struct; NULL is allowed. -1 also if it cannot be one. */
int memory_pointer(struct memory *memory, uint64_t address, uint64_t *out);

/* An address that a pointer to a struct can have: in the user's half, aligned to 8 bytes. */
bool memory_is_pointer(uint64_t value);

/* Numbers inside of bytes that were read. All targets are little-endian, as the reader is. */
uint64_t memory_u64_at(const unsigned char *bytes);
uint32_t memory_u32_at(const unsigned char *bytes);

/*
 * Where the structs of CPython 3.8 to 3.14 have their members, on 64-bit Linux.
 *
 * For 3.8 to 3.12 the offsets are constants of each minor version; no patch release moved any of
 * them. From 3.13 on, the interpreter describes itself in _Py_DebugOffsets, at the start of
 * _PyRuntime. Newer versions are refused: they may move anything.
 */

#define LAYOUT_OLDEST 8 /* the minor versions of Python 3 that it knows */
#define LAYOUT_NEWEST 14
#define LAYOUT_NONE UINT32_MAX /* this version has no such member */
#define LAYOUT_TAG_BITS 3u     /* of what refers to an object on the stack of a frame, in 3.14 */

/* All but the first two are offsets in bytes, in the struct that the first word of the name says.
 */
struct python_layout {
    int minor;                                                        /* of Python 3 */
    bool free_threaded;                                               /* a build without a GIL */
    uint32_t runtime_interpreters, runtime_current;                   /* _PyRuntime */
    uint32_t interp_next, interp_threads, interp_gil;                 /* PyInterpreterState */
    uint32_t gil_holder, gil_locked;                                  /* at interp_gil */
    uint32_t thread_next, thread_interp, thread_id, thread_native_id; /* PyThreadState */
    uint32_t thread_frame; /* in 3.11 and 3.12: the struct that has the frame at cframe_frame */
    uint32_t cframe_frame;
    uint32_t frame_back, frame_code, frame_owner;
    uint32_t frame_position; /* in 3.8 to 3.10 a number of an instruction, later an address */
    uint32_t frame_line, frame_trace;
    uint32_t frame_copy; /* which of code_copies it runs, in builds without a GIL */
    uint32_t code_file, code_name, code_qualname, code_first_line, code_table;
    uint32_t code_start; /* of the instructions */
    uint32_t code_copies;
    uint32_t object_type, type_name, bytes_size, bytes_data;
    uint32_t str_length, str_state, str_ascii, str_wide;
};

/* The layout of Python 3.`minor`, whose _PyRuntime is at `runtime`. -1: unknown version, or its
 * description of itself is not plausible. */
int python_layout_read(int minor, struct memory *memory, uint64_t runtime,
                       struct python_layout *out);

/* Bytes that hold all members of a frame, or of a code object, that are in use. */
uint32_t python_layout_frame_size(const struct python_layout *layout);
uint32_t python_layout_code_size(const struct python_layout *layout);
