/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry of the root's table: a request that some ranks have submitted and others have not. The
 * request of the first rank is the measure for the others.
 */
#pragma once

#include "base/buf.h"
#include "core/bits.h"
#include "core/config.h"

struct entry {
    size_t id; /* of the tensor in the cache; NO_ID: it has none */
    struct request request;
    bool borrowed;          /* the request's memory is that of the cache */
    struct request other;   /* of the first rank that disagrees; key NULL: none does */
    const char *difference; /* what it disagrees about */
    struct bits have;       /* set ranks that have submitted it */
    struct bits others;     /* those whose request is that of `other` */
    struct bits apart;      /* those whose request is neither that of `other` nor the first one */
    int64_t since_ns, warned_ns;
    uint64_t ready; /* 0: not all ranks have submitted it; else its number among those that were */
    struct entry *next, *previous; /* in the order of their coming */
};

/* An entry is used for one operation after the other: begin, end, begin. */
struct entry *entry_create(void);
void entry_destroy(struct entry *entry);
void entry_begin(struct entry *entry, size_t id, const struct request *request, bool borrowed,
                 int64_t now_ns);
void entry_end(struct entry *entry);

/* Copies the request if it is borrowed: the cache is about to change. */
void entry_own(struct entry *entry);

void entry_add(struct entry *entry, int rank, const struct request *request);

/* The error of an entry that all ranks have submitted. Appends nothing if it has none. */
void entry_describe_error(const struct entry *entry, const struct bits *joined,
                          const struct core_config *config, struct buf *out);

/* Appends the global numbers of set ranks: "rank 3", "ranks 0 and 2", "ranks 0, 1 and 2". */
void entry_describe_ranks(const struct bits *which, const struct core_config *config,
                          struct buf *out);
