/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a rank that say the most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "features/evidence/error_text.h"

#define TRACEBACK "Traceback (most recent call last):\n"
#define DUMP                                                                                    \
    "[rank0]:[I1122 02:06:55.187 ProcessGroupNCCL.cpp:1735] [PG ID 0 Rank 0] ProcessGroupNCCL " \
    "preparing to dump debug info. Include stack trace: 1, only active collectives: 0\n"
#define DESTROY                                                                \
    "[rank0]:[W1122 02:06:55.18 ProcessGroupNCCL.cpp:1496] Warning: WARNING: " \
    "destroy_process_group() was not called before program exit\n"

#define CUDA                                                                              \
    "CUDA kernel errors might be asynchronously reported at some other API call, so the " \
    "stacktrace below might be incorrect.\nFor debugging consider passing "               \
    "CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side "    \
    "assertions.\n\n"

/* What is quoted, with '|' between the lines. */
static const struct row {
    const char *name, *text, *wanted;
} rows[] = {
    {"nothing", "", ""},
    {"the last lines", "1\n2\n\n  3\n4\n", "2|3|4"},
    {"a line without an end", "1\n2", "1|2"},
    {"a traceback",
     TRACEBACK "  File \"t.py\", line 7, in <module>\n    raise ValueError(\"x\")\n    ^^^^^^^\n"
               "ValueError: x\n",
     "File \"t.py\", line 7, in <module>|raise ValueError(\"x\")|ValueError: x"},
    {"what PyTorch writes because hvdrun asks", "epoch 1\nepoch 2\n" DUMP DUMP DUMP,
     "epoch 1|epoch 2"},
    {"only that", DUMP, ""},
    {"what follows an exception",
     TRACEBACK "  File \"t.py\", line 7, in f\nValueError: x\n" DESTROY
               "python3.11/multiprocessing/resource_tracker.py:224: UserWarning: resource_tracker: "
               "There appear to be 1 leaked semaphore objects to clean up at shutdown\n"
               "  warnings.warn('x')\nbye\n",
     "File \"t.py\", line 7, in f|ValueError: x"},
    {"an exception that ends nothing",
     TRACEBACK "  File \"t.py\", line 7, in f\nValueError: x\n"
               "Exception ignored in: <function A.__del__ at 0x7>\n" TRACEBACK
               "  File \"t.py\", line 3, in __del__\nAttributeError: y\n",
     "File \"t.py\", line 7, in f|ValueError: x"},
    {"an earlier exception that was handled",
     TRACEBACK "  File \"t.py\", line 1, in f\nOSError: x\n" TRACEBACK
               "  File \"t.py\", line 7, in f\nKeyError: y\n",
     "File \"t.py\", line 7, in f|KeyError: y"},
    {"of a rank of torch.distributed",
     "[rank3]: " TRACEBACK "[rank3]:   File \"t.py\", line 7, in f\n[rank3]: ValueError: x\nbye\n",
     "File \"t.py\", line 7, in f|ValueError: x"},
    {"a program that is not Python",
     "step 1\nt: t.c:7: main: Assertion `x > 0' failed.\nc17: 1 process was killed\n",
     "step 1|t: t.c:7: main: Assertion `x > 0' failed."},
    {"a crash of Python",
     "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f0 (most recent call "
     "first):\n"
     "  File \"/x/ctypes.py\", line 519 in string_at\n  File \"t.py\", line 8 in read_batch\n"
     "  File \"t.py\", line 20 in <module>\n\nExtension modules: numpy (total: 1)\n",
     "Fatal Python error: Segmentation fault|File \"/x/ctypes.py\", line 519 in string_at|File "
     "\"t.py\", line 8 in read_batch"},
    {"a crash of Python without a stack", "1\nFatal Python error: Segmentation fault\nbye\n",
     "1|Fatal Python error: Segmentation fault"},
    {"only warnings", "t.py:3: UserWarning: no CUDA\n  warnings.warn(\"no CUDA\")\n",
     "t.py:3: UserWarning: no CUDA|warnings.warn(\"no CUDA\")"},
    {"an error of CUDA, after an assertion of the GPU",
     "/x/Loss.cu:245: nll_loss: block: [0,0,0], thread: [0,0,0] Assertion `t >= 0 && t < n` "
     "failed.\n" TRACEBACK "  File \"t.py\", line 7, in f\n    g()\n"
     "RuntimeError: CUDA error: device-side assert triggered\n" CUDA,
     "/x/Loss.cu:245: nll_loss: block: [0,0,0], thread: [0,0,0] Assertion `t >= 0 && t < n` "
     "failed.|File \"t.py\", line 7, in f|RuntimeError: CUDA error: device-side assert triggered"},
    {"a message of several lines",
     TRACEBACK
     "  File \"t.py\", line 7, in f\n    g()\n"
     "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: "
     "copying 2\n\tsize mismatch for fc.bias: copying 3\n\tsize mismatch for x: y\n",
     "RuntimeError: Error(s) in loading state_dict for Net:|size mismatch for fc.weight: copying "
     "2|size mismatch for fc.bias: copying 3"},
    {"a chain",
     TRACEBACK "  File \"t.py\", line 3, in load\nKeyError: 'lr'\n\nThe above exception was the "
               "direct cause of the following exception:\n\n" TRACEBACK
               "  File \"t.py\", line 7, in <module>\n    main()\nRuntimeError: bad file\n",
     "KeyError: 'lr'|File \"t.py\", line 7, in <module>|RuntimeError: bad file"},
    {"an error of a process of a DataLoader",
     TRACEBACK "  File \"t.py\", line 9, in <module>\n    for x in loader:\nRuntimeError: Caught "
               "ValueError in DataLoader worker process 0.\nOriginal " TRACEBACK
               "  File \"t.py\", line 3, in __getitem__\n    raise ValueError('row')\n"
               "ValueError: row\n\n",
     "File \"t.py\", line 3, in __getitem__|raise ValueError('row')|ValueError: row"},
    {"a crash after an exception that was handled",
     TRACEBACK "  File \"t.py\", line 1, in f\nOSError: x\nFatal Python error: Bus error\n\n"
               "Current thread 0x7 (most recent call first):\n  File \"t.py\", line 8 in g\n",
     "OSError: x|Fatal Python error: Bus error|File \"t.py\", line 8 in g"},
    {"an exception of C++",
     "1\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  "
     "bad\nbye\n",
     "1|terminate called after throwing an instance of 'std::runtime_error'|what():  bad"},
    {"a long line",
     TRACEBACK "  File \"t.py\", line 7, in f\n"
               "ValueError: 1234567890123456789012345678901234567890123456789012345678901234567890"
               "1234567890123456789012345678901234567890123456789012345678901234567890123456789012"
               "3456789012345678901234567890123456789012345678901234567890\nbye\n",
     "File \"t.py\", line 7, in f|ValueError: 123456789012345678901234567890123456789012345678901"
     "2345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012"
     "34567890123456789012345678901234567890123456789012345678901234567890"},
};

static void quote(const char *text, const char *words, struct strv *out)
{
    struct error_text error;
    size_t at;
    error_text_read(text, &error);
    if (error_text_find(&error, words, &at) == ERROR_TEXT_NOT)
        at = error.names;
    error_text_quote(&error, at, out);
    assert_true(out->count <= ERROR_TEXT_QUOTED);
    error_text_clear(&error);
}

static void expect_quoted(const char *name, const char *text, const char *words, const char *wanted)
{
    struct strv quoted AUTO_STRV = STRV_INIT;
    struct buf found AUTO_BUF = BUF_INIT(10000);
    quote(text, words, &quoted);
    for (size_t i = 0; i < quoted.count; i++)
        buf_printf(&found, "%s%s", i > 0 ? "|" : "", quoted.items[i]);
    if (strcmp(buf_text(&found), wanted) != 0)
        fail_msg("%s: '%s'", name, buf_text(&found));
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_quoted(rows[i].name, rows[i].text, "", rows[i].wanted);
}

/* A line that is known says more than the last ones. */
static void test_a_line_that_is_known(void **state)
{
    (void)state;
    static const char text[] = "step 9\nLicensed number of users already reached.\nFeature: M\n"
                               "License path: 27000@l\nFlexNet Licensing error:-4,132\n";
    expect_quoted("licence", text, "no such|users already",
                  "Licensed number of users already reached.|Feature: M|License path: 27000@l");
    expect_quoted("the last one", text, "-4,132",
                  "Feature: M|License path: 27000@l|FlexNet Licensing error:-4,132");
    expect_quoted("before a traceback",
                  "x NCCL WARN Got completion with status=12\n" TRACEBACK
                  "  File \"t.py\", line 7, in f\nRuntimeError: x\n",
                  "with status=12",
                  "x NCCL WARN Got completion with status=12|File \"t.py\", line 7, in "
                  "f|RuntimeError: x");
}

static void test_where_a_word_is(void **state)
{
    (void)state;
    struct error_text error;
    size_t at;
    error_text_read("disk full\n" TRACEBACK "  File \"t.py\", line 7, in f\n    raise no_memory\n"
                    "ValueError: a bad row\nof b\n\nand c\n",
                    &error);
    assert_int_equal(error_text_find(&error, "a bad", &at), ERROR_TEXT_EXACT);
    assert_int_equal(error_text_find(&error, "x|of b|", &at), ERROR_TEXT_EXACT);
    assert_int_equal(at, 5);
    assert_int_equal(error_text_find(&error, "disk full", &at), ERROR_TEXT_NEAR);
    assert_int_equal(error_text_find(&error, "no_memory", &at), ERROR_TEXT_NOT);
    assert_int_equal(error_text_find(&error, "and c", &at), ERROR_TEXT_NOT);
    error_text_clear(&error);
    error_text_read("1\n2\n", &error);
    assert_int_equal(error_text_find(&error, "2", &at), ERROR_TEXT_NEAR);
    error_text_clear(&error);
}

/* In the program's own files, if there is such a frame. */
static void test_places(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place;
    } places[] = {
        {TRACEBACK "  File \"/home/me/t.py\", line 7, in <module>\n    f()\n  File "
                   "\"/home/me/data.py\", line 12, in load\n    x()\n  File "
                   "\"/usr/lib/python3.11/json.py\", line 3, in loads\n    y()\nValueError: x\n",
         "data.py:12 (load)"},
        {TRACEBACK "  File \"t.py\", line 7, in <module>\nValueError: x\n", "t.py:7"},
        {TRACEBACK "  File \"/x/site-packages/a.py\", line 3, in g\nValueError: x\n", "a.py:3 (g)"},
        {"ValueError: x\n", NULL},
        {TRACEBACK "  File \"t.py\nValueError: x\n", NULL},
    };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct error_text error;
        error_text_read(places[i].text, &error);
        char *place AUTO_FREE = error_text_place(&error);
        if (places[i].place == NULL)
            assert_null(place);
        else
            assert_string_equal(place, places[i].place);
        error_text_clear(&error);
    }
}

/* Each beginning of the texts is a text. */
static void test_torn_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t length = 0; length <= strlen(rows[i].text); length++) {
            char *torn AUTO_FREE = mem_strndup(rows[i].text, length);
            struct strv quoted AUTO_STRV = STRV_INIT;
            quote(torn, "File", &quoted);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_a_line_that_is_known),
        cmocka_unit_test(test_where_a_word_is),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_torn_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
