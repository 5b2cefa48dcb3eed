/* SPDX-License-Identifier: Apache-2.0 */
/* --label: the template in the first line, the host's name behind it. */
#include "base/buf.h"
#include "fuzz.h"
#include "output/label.h"

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    char *template AUTO_FREE = fuzz_line(&bytes);
    char *host AUTO_FREE = fuzz_text(bytes.at, bytes.left < 255 ? bytes.left : 255);
    struct error err = ERROR_INIT;
    struct label *label = label_compile(template, &err);
    if (label == NULL) {
        fuzz_check_error(-1, &err);
        return 0;
    }
    AUTO_BUF struct buf out = BUF_INIT((size_t)1 << 20);
    struct label_facts facts = {
        .rank = INT32_MAX, .host = host, .stream = "stderr", .wall_ns = INT64_C(1800000000) << 20};
    label_render(label, &facts, &out);
    facts = (struct label_facts){.rank = -1, .local_rank = -1, .stream = "stdout", .wall_ns = -1};
    label_render(label, &facts, &out);
    label_destroy(label);
    return 0;
}
