/* SPDX-License-Identifier: Apache-2.0 */
/* What a job answers to `hvdrun status` and `top`, read and shown: nothing in it steers the
 * terminal. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/control.h"
#include "cli/control_client.h"
#include "features/usage/usage_marks.h"
#include "features/usage/usage_test.h"
#include "fuzz.h"

#define SENT_MAX ((size_t)64 << 10) /* what a socket takes without a reader */

static void check_text(const char *text)
{
    for (; *text != '\0'; text++) {
        FUZZ_CHECK((unsigned char)text[0] != 0xc2 || (unsigned char)text[1] >= 0xa0);
        FUZZ_CHECK(*text == '\n' || *text == '\t' ||
                   ((unsigned char)*text >= ' ' && *text != 0x7f));
    }
}

FUZZ_TARGET
{
    int ends[2];
    struct error err = ERROR_INIT;
    FUZZ_CHECK(fd_socketpair(ends) == 0);
    if (size > 0)
        FUZZ_CHECK(fd_send_all(ends[1], data, size < SENT_MAX ? size : SENT_MAX) == 0);
    FUZZ_CHECK(size == 0 || fd_send_all(ends[1], "\n", 1) == 0);
    shutdown(ends[1], SHUT_WR);
    json_t *answer = control_client_ask(ends[0], json_pack("{s:s}", "do", "status"), &err);
    fuzz_check_error(answer == NULL ? -1 : 0, &err);
    check_text(err.text);
    if (answer != NULL) {
        struct buf out AUTO_BUF = BUF_INIT((size_t)64 << 20);
        FUZZ_CHECK(json_is_object(answer));
        control_status_text(answer, &out);
        FUZZ_CHECK(out.length > 0 && buf_text(&out)[out.length - 1] == '\n');
        check_text(buf_text(&out));
        buf_clear(&out);
        usage_marks_set(answer);
        control_usage_text(answer, &out);
        check_text(buf_text(&out));
    }
    json_decref(answer);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    return 0;
}
