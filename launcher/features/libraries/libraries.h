/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which libraries that matter to a distributed job a process has loaded, from its /proc/PID/maps,
 * and which exactly, from what is mapped of them. Pure.
 *
 * A library is read where the process has it mapped, and not from its file. That is the same in a
 * container, and after the file was deleted or replaced. Nothing that is read is trusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf.h"

/* X(name, key in JSON, title). */
#define LIBRARY_LIST(X)                                     \
    X(LIBRARY_NCCL, "nccl", "NCCL")                         \
    X(LIBRARY_CUDA, "cuda", "CUDA driver")                  \
    X(LIBRARY_CUDART, "cudart", "CUDA runtime")             \
    X(LIBRARY_MPI, "mpi", "MPI")                            \
    X(LIBRARY_TORCH, "torch", "PyTorch")                    \
    X(LIBRARY_TORCH_CUDA, "torch_cuda", "PyTorch for CUDA") \
    X(LIBRARY_HVD, "hvd", "libhvd")

enum library_kind {
#define LIBRARY_ENUM(name, key, title) name,
    LIBRARY_LIST(LIBRARY_ENUM)
#undef LIBRARY_ENUM
        LIBRARY_KINDS
};

extern const struct library_words {
    const char *key, *title;
} library_words[LIBRARY_KINDS];

/* By the name of the file, as in "libcudart-d0da41ae.so.11.0". LIBRARY_KINDS: none of them. */
enum library_kind library_kind_of(const char *name);

/* What follows ".so." in the name of the file, or "": "2.28.9". Borrowed. */
const char *library_version(const char *path);

/* A library that tools and builds put in the place of a real one: ".../stubs/libcuda.so". */
bool library_is_stub(const char *path);

#define LOADED_MAX 32        /* libraries of a process */
#define LOADED_PATH_MAX 4096 /* bytes; those with longer paths are left out */
#define LOADED_MAPPINGS 8

struct loaded_mapping {
    uint64_t start, end, offset;
};

struct loaded_library {
    enum library_kind kind;
    char *path; /* as the process sees it */
    bool deleted;
    uint64_t inode;
    struct loaded_mapping mappings[LOADED_MAPPINGS]; /* those that it cannot write to */
    size_t mapping_count;
};

/* From the text of maps, at most LOADED_MAX, in the order of their paths: that of their addresses
 * is another one in each process. Returns their number; free each path. */
size_t loaded_read(const char *maps, struct loaded_library *out);

/* Where the process has a byte of the file, and how many follow there. 0: nowhere. */
size_t loaded_at(const struct loaded_library *library, uint64_t offset, uint64_t *address);

/* Its build id. `memory` is that of the process, whose offsets are addresses. The caller frees the
 * text, which is "" if it has none, or that cannot be read. */
char *loaded_identity(const struct loaded_library *library, const struct elf_source *memory,
                      uint32_t *machine);

/*
 * Do ranks of one program have different libraries of a kind, or has a process two of them?
 *
 * Only what is certain counts. Two files are the same library if their build ids are equal,
 * whatever their paths. Files without one, libraries for other processors, and stubs are not
 * compared. A rank that lacks a library may load it later.
 *
 * Two CUDA runtimes in a process are usual: many libraries bring their own. So are two CUDA drivers
 * in WSL: one only leads to the other.
 */
struct library_file {
    enum library_kind kind;
    uint32_t machine;
    char *path, *id;
    bool deleted;
};

struct library_rank {
    int rank, app;
    const int *files; /* that its process has loaded: indices */
    size_t count;
};

/* `text`, borrowed, is one line without an end. `same_process`: it is about two in one process. */
typedef void library_each(void *context, enum library_kind kind, bool same_process,
                          const char *text);

/* In the order of the kinds and programs. The ranks are in ascending order. */
void libraries_differ(const struct library_file *files, const struct library_rank *ranks,
                      size_t count, library_each *each, void *context);
