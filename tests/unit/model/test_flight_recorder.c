/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of PyTorch's flight recorder, new names and old ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "model/env/flight_recorder.h"

static void expect_armed(const char *first, const char *second, const char *wanted)
{
    struct buf text AUTO_BUF = BUF_INIT(10000);
    char *items[] = {(char *)"PATH=/bin", NULL, (char *)first, (char *)second};
    struct strv armed AUTO_STRV = STRV_INIT;
    flight_recorder_arm(items, 4, "/run/x", &armed);
    for (size_t i = 0; i < armed.count; i++)
        buf_printf(&text, "%s\n", armed.items[i]);
    assert_string_equal(buf_text(&text), wanted);
}

#define SIZE "TORCH_FR_BUFFER_SIZE=2000\n"
#define DUMP "TORCH_FR_DUMP_TEMP_FILE=/run/x/flight_\n"
#define PIPE "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/run/x/flight_\n"

static void test_arm(void **state)
{
    (void)state;
    expect_armed("A=1", "TORCH_FR_BUFFER_SIZES=3", SIZE DUMP PIPE);
    expect_armed("TORCH_FR_BUFFER_SIZE=3", "A=", DUMP PIPE);
    expect_armed("TORCH_NCCL_TRACE_BUFFER_SIZE=3", "A=", DUMP PIPE);
    expect_armed("TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/x", "A=", SIZE PIPE);
    expect_armed("TORCH_FR_DUMP_TEMP_FILE=/x", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=", SIZE);
}

static void expect_places(const char *environ, size_t length, const char *pipe, const char *dump)
{
    struct flight_places places;
    int result = flight_recorder_places(environ, length, &places);
    assert_int_equal(result, pipe == NULL ? -1 : 0);
    if (pipe != NULL) {
        assert_string_equal(places.pipe, pipe);
        assert_string_equal(places.dump, dump);
    }
    flight_places_clear(&places);
}
#define EXPECT_PLACES(environ, pipe, dump) \
    expect_places((environ), sizeof(environ) - 1, (pipe), (dump))

static void test_places(void **state)
{
    (void)state;
    EXPECT_PLACES("", NULL, NULL);
    EXPECT_PLACES("RANK=3\0TORCH_FR_DUMP_TEMP_FILE=/f/d_\0", NULL, NULL);
    EXPECT_PLACES("TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/f/p_\0", NULL, NULL);
    EXPECT_PLACES("RANK=3\0TORCH_NCCL_DEBUG_INFO_PIPE_FILE=\0", NULL, NULL);
    EXPECT_PLACES("RANK=../3\0TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/f/p_\0", NULL, NULL);
    EXPECT_PLACES("RANK=3\0TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/f/p_\0", "/f/p_3.pipe",
                  "/tmp/nccl_trace_rank_3");
    EXPECT_PLACES("TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/o/d_\0TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/f/p_\0"
                  "RANK=12\0",
                  "/f/p_12.pipe", "/o/d_12");
    EXPECT_PLACES("TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/o/d_\0TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/f/p_\0"
                  "TORCH_FR_DUMP_TEMP_FILE=/n/d_\0RANK=0",
                  "/f/p_0.pipe", "/n/d_0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arm),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
