/* SPDX-License-Identifier: Apache-2.0 */
/* One stack, as those who compare stacks take it: features/hang/places.h and stacks/tree.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(role, word, heading): in the order in which they are shown. */
#define STACK_ROLE_LIST(X)                   \
    X(STACK_MAIN, "main", "main threads")    \
    X(STACK_OTHER, "other", "other threads") \
    X(STACK_CHILD, "child", "child processes")

enum stack_role {
#define STACK_ROLE_ENUM(name, word, heading) name,
    STACK_ROLE_LIST(STACK_ROLE_ENUM)
#undef STACK_ROLE_ENUM
        STACK_ROLES
};

/* What a look shows. Each also shows what those before it do. */
enum look_depth {
    LOOK_PYTHON,
    LOOK_NATIVE, /* frames of compiled code, which takes longer */
    LOOK_CALLS,  /* whether threads have left their call of MPI: stacks/call_watch.h */
};

/* Parts of what agents write. */
#define STACK_RUNNING "running"           /* `doing` of a thread that uses a processor, or would */
#define STACK_ON " on "                   /* "calls read on nfs4" */
#define STACK_MORE_FRAMES "(more frames)" /* a frame: those further out are unknown */

/* Its texts are borrowed, or belong to those who read them from a process. */
struct stack_frame {
    const char *function, *file;
    int line;    /* 0: unknown */
    bool native; /* of compiled code */
};

struct stack {
    int rank;
    enum stack_role role;
    bool holds_gil;
    bool bare;                        /* of a process that runs no Python, whose name is in front */
    bool held;                        /* `doing` says why it cannot go on: somebody stopped it */
    const char *name;                 /* of the thread; "" or NULL: that of the process */
    const char *doing;                /* "calls futex"; "" */
    const struct stack_frame *frames; /* the outermost first */
    size_t count;
    const char *trouble; /* why there are no frames; "" */
    /* A number for the call of MPI in which it is. If two looks show the same number, it has not
     * left that call between them. 0: it is in none, or that is unknown. */
    uint64_t call;
    bool mpi_helper; /* it is a thread of the MPI library itself, and in no call */
};
