/* SPDX-License-Identifier: Apache-2.0 */
/* Which libraries of ranks differ, and which only seem to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "features/libraries/libraries.h"

enum {
    MPI_A,
    MPI_COPY,
    MPI_B,
    MPI_C,
    MPI_ARM,
    NCCL_A,
    NCCL_B,
    NCCL_NEW,
    NCCL_OLD,
    CUDA_STUB,
    CUDA,
    CUDA_WSL,
    RUNTIME,
    OLD_RUNTIME
};

static const struct library_file files[] = {
    [MPI_A] = {LIBRARY_MPI, 1, "/a/libmpi.so.40", "aaaabbbbccccdddd", false},
    [MPI_COPY] = {LIBRARY_MPI, 1, "/copy/libmpi.so.41", "aaaabbbbccccdddd", false},
    [MPI_B] = {LIBRARY_MPI, 1, "/b/libmpi.so.40", "bbbb", false},
    [MPI_C] = {LIBRARY_MPI, 1, "/b/libmpi.so.40", "cccc", true},
    [MPI_ARM] = {LIBRARY_MPI, 2, "/arm/libmpi.so.40", "eeee", false},
    [NCCL_A] = {LIBRARY_NCCL, 1, "/a/libnccl.so.2", "5555", false},
    [NCCL_B] = {LIBRARY_NCCL, 1, "/b/libnccl.so.2", "", false},
    [NCCL_NEW] = {LIBRARY_NCCL, 1, "/b/libnccl.so.2.28.9", "", false},
    [NCCL_OLD] = {LIBRARY_NCCL, 1, "/b/libnccl.so.2.18.3", "6666", false},
    [CUDA_STUB] = {LIBRARY_CUDA, 1, "/cuda/stubs/libcuda.so", "1111", false},
    [CUDA] = {LIBRARY_CUDA, 1, "/usr/lib/libcuda.so.580.1", "2222", false},
    [CUDA_WSL] = {LIBRARY_CUDA, 1, "/usr/lib/wsl/lib/libcuda.so.1", "7777", false},
    [RUNTIME] = {LIBRARY_CUDART, 1, "/c/libcudart.so.12", "3333", false},
    [OLD_RUNTIME] = {LIBRARY_CUDART, 1, "/d/libcudart.so.11", "4444", false},
};

static void add(void *context, enum library_kind kind, bool same_process, const char *text)
{
    (void)kind;
    buf_printf(context, "%s%s\n", same_process ? "!" : "", text);
}

/* A rank with two files, or one: -1. */
struct one {
    int app, first, second;
};

static void expect(const struct one *given, size_t count, const char *wanted)
{
    struct library_rank *ranks AUTO_FREE = mem_array(count + 1, sizeof(*ranks));
    int(*numbers)[2] = mem_array(count + 1, sizeof(*numbers));
    struct buf said AUTO_BUF = BUF_INIT(100000);
    for (size_t i = 0; i < count; i++) {
        numbers[i][0] = given[i].first;
        numbers[i][1] = given[i].second;
        ranks[i] = (struct library_rank){(int)i, given[i].app, numbers[i],
                                         given[i].first < 0    ? 0
                                         : given[i].second < 0 ? 1
                                                               : 2};
    }
    libraries_differ(files, ranks, count, add, &said);
    assert_string_equal(buf_text(&said), wanted);
    free(numbers);
}

#define EXPECT(wanted, ...)                                        \
    do {                                                           \
        const struct one given[] = {__VA_ARGS__};                  \
        expect(given, sizeof(given) / sizeof(given[0]), (wanted)); \
    } while (0)

static void test_the_same(void **state)
{
    (void)state;
    expect(NULL, 0, "");
    EXPECT("", {0, MPI_A, -1}, {0, MPI_COPY, -1}, {0, MPI_COPY, MPI_A});
    EXPECT("", {0, MPI_A, -1}, {1, MPI_B, -1}); /* two programs */
    EXPECT("", {0, MPI_A, -1}, {0, MPI_ARM, -1});
    EXPECT("", {0, MPI_A, -1}, {0, -1, -1}, {0, NCCL_A, -1}); /* not yet */
    EXPECT("", {0, NCCL_B, -1}, {0, NCCL_NEW, -1});           /* not known: they may be links */
    EXPECT("", {0, NCCL_A, -1}, {0, NCCL_NEW, -1}, {0, NCCL_A, NCCL_B});
    EXPECT("", {0, CUDA_WSL, CUDA}, {0, CUDA_WSL, CUDA});
    EXPECT("", {0, CUDA_STUB, CUDA}, {0, CUDA, -1}, {0, CUDA_STUB, -1});
    EXPECT("", {0, RUNTIME, OLD_RUNTIME}, {0, RUNTIME, OLD_RUNTIME});
}

static void test_ranks_differ(void **state)
{
    (void)state;
    EXPECT("ranks of one program have loaded different MPI libraries: ranks 0-1,3: /a/libmpi.so.40 "
           "(build id aaaabbbbcccc); rank 2: /b/libmpi.so.40 (build id bbbb)\n",
           {0, MPI_A, -1}, {0, MPI_COPY, -1}, {0, MPI_B, -1}, {0, MPI_A, -1});
    EXPECT("ranks of one program have loaded different MPI libraries: rank 1: /b/libmpi.so.40 "
           "(build id bbbb); rank 2: /b/libmpi.so.40 (build id cccc, deleted)\n",
           {0, MPI_A, -1}, {1, MPI_B, -1}, {1, MPI_C, -1});
    EXPECT("ranks of one program have loaded different NCCL libraries: rank 0: /a/libnccl.so.2 "
           "(build id 5555); rank 1: /b/libnccl.so.2.18.3 (build id 6666)\n"
           "ranks of one program have loaded different CUDA runtime libraries: rank 0: "
           "/c/libcudart.so.12 (build id 3333); rank 1: /d/libcudart.so.11 (build id 4444)\n",
           {0, NCCL_A, RUNTIME}, {0, NCCL_OLD, OLD_RUNTIME});
}

static void test_two_in_a_process(void **state)
{
    (void)state;
    EXPECT("!ranks 0,2 have two MPI libraries in one process: /a/libmpi.so.40 "
           "(build id aaaabbbbcccc) and /b/libmpi.so.40 (build id bbbb)\n",
           {0, MPI_A, MPI_B}, {0, MPI_A, -1}, {0, MPI_A, MPI_B});
    EXPECT("!rank 1 has two MPI libraries in one process: /a/libmpi.so.40 (build id aaaabbbbcccc) "
           "and /b/libmpi.so.40 (build id cccc, deleted)\n",
           {0, MPI_B, -1}, {1, MPI_A, MPI_C});
}

/* Many ranks, each with a file of its own: bounded in time and text. */
static void test_many(void **state)
{
    enum { COUNT = 3000 };
    static struct library_file many[COUNT];
    static struct library_rank ranks[COUNT];
    static int numbers[COUNT];
    struct buf said AUTO_BUF = BUF_INIT(100000);
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        many[i] = (struct library_file){LIBRARY_HVD, 1, "/libhvd.so.0", "", false};
        numbers[i] = i;
        ranks[i] = (struct library_rank){i, i / 2, &numbers[i], 1};
    }
    libraries_differ(many, ranks, COUNT, add, &said);
    assert_string_equal(buf_text(&said), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same),
        cmocka_unit_test(test_ranks_differ),
        cmocka_unit_test(test_two_in_a_process),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
