/* SPDX-License-Identifier: Apache-2.0 */
/* A command as one text: --launch-agent and the like; filled in for a host in the first line. */
#include "base/strv.h"
#include "fuzz.h"
#include "model/settings/split.h"
#include "transport/exec/words.h"

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    char *host AUTO_FREE = fuzz_line(&bytes), *text AUTO_FREE = fuzz_text(bytes.at, bytes.left);
    AUTO_STRV struct strv words = STRV_INIT, template = STRV_INIT, argv = STRV_INIT;
    struct error err = ERROR_INIT;
    int result = words_split(text, &words, &err);
    fuzz_check_error(result, &err);
    FUZZ_CHECK(result < 0 || words.count > 0);
    struct transport_target target = {.host = host, .user = size % 2 == 0 ? host : NULL};
    if (exec_template_parse(text, &template, &err) == 0) {
        result = exec_template_fill(&template, &target, "/bin/sh", &argv, &err);
        fuzz_check_error(result, &err);
        FUZZ_CHECK(result < 0 || argv.count > template.count);
    }
    return 0;
}
