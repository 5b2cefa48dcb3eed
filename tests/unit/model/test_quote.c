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
#include "model/explain/quote.h"

#define TRACEBACK_LINE "Traceback (most recent call last):"
#define TRACEBACK "Traceback (most recent call last):\n"
#define DUMP                                                                                    \
    "[rank0]:[I1122 02:06:55.187 ProcessGroupNCCL.cpp:1735] [PG ID 0 Rank 0] ProcessGroupNCCL " \
    "preparing to dump debug info. Include stack trace: 1, only active collectives: 0\n"
#define DESTROY                                                                \
    "[rank0]:[W1122 02:06:55.18 ProcessGroupNCCL.cpp:1496] Warning: WARNING: " \
    "destroy_process_group() was not called before program exit\n"

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
     TRACEBACK_LINE "|File \"t.py\", line 7, in f|ValueError: x"},
    {"an exception that ends nothing",
     TRACEBACK "  File \"t.py\", line 7, in f\nValueError: x\n"
               "Exception ignored in: <function A.__del__ at 0x7>\n" TRACEBACK
               "  File \"t.py\", line 3, in __del__\nAttributeError: y\n",
     TRACEBACK_LINE "|File \"t.py\", line 7, in f|ValueError: x"},
    {"an earlier exception that was handled",
     TRACEBACK "  File \"t.py\", line 1, in f\nOSError: x\n" TRACEBACK
               "  File \"t.py\", line 7, in f\nKeyError: y\n",
     TRACEBACK_LINE "|File \"t.py\", line 7, in f|KeyError: y"},
    {"of a rank of torch.distributed",
     "[rank3]: " TRACEBACK "[rank3]:   File \"t.py\", line 7, in f\n[rank3]: ValueError: x\nbye\n",
     "[rank3]: " TRACEBACK_LINE "|[rank3]:   File \"t.py\", line 7, in f|[rank3]: ValueError: x"},
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
    {"a long line",
     TRACEBACK "  File \"t.py\", line 7, in f\n"
               "ValueError: 1234567890123456789012345678901234567890123456789012345678901234567890"
               "1234567890123456789012345678901234567890123456789012345678901234567890123456789012"
               "3456789012345678901234567890123456789012345678901234567890\nbye\n",
     TRACEBACK_LINE
     "|File \"t.py\", line 7, in f|ValueError: 123456789012345678901234567890123456789012345678901"
     "2345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012"
     "34567890123456789012345678901234567890123456789012345678901234567890"},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct strv quoted AUTO_STRV = STRV_INIT;
        struct buf text AUTO_BUF = BUF_INIT(10000);
        explain_quote(rows[i].text, &quoted);
        for (size_t j = 0; j < quoted.count; j++)
            buf_printf(&text, "%s%s", j > 0 ? "|" : "", quoted.items[j]);
        if (strcmp(buf_text(&text), rows[i].wanted) != 0)
            fail_msg("%s: '%s'", rows[i].name, buf_text(&text));
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
            explain_quote(torn, &quoted);
            assert_true(quoted.count <= QUOTE_LINES);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_torn_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
