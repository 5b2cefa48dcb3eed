/* SPDX-License-Identifier: Apache-2.0 */
/* --env-file, and -x: a word in the first line, the file behind it. */
#include "base/strv.h"
#include "fuzz.h"
#include "model/env/scrub.h"

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    char *spec AUTO_FREE = fuzz_line(&bytes);
    char *text AUTO_FREE = fuzz_text(bytes.at, bytes.left);
    AUTO_STRV struct strv env = STRV_INIT, out = STRV_INIT, away = STRV_INIT;
    struct error err = ERROR_INIT, bad = ERROR_INIT;
    fuzz_check_error(env_file_parse(text, bytes.left, "f", &env, &err), &err);
    for (size_t i = 0; i < env.count; i++)
        FUZZ_CHECK(strchr(env.items[i], '=') != NULL && env.items[i][0] != '=');
    fuzz_check_error(env_spec_apply(spec, strv_items(&env), &out, &bad), &bad);
    env_scrub(strv_items(&env), false, false, &out);
    env_scrub_for_host(strv_items(&out), strv_items(&env), &away);
    env_scrub_own_scheduler(strv_items(&env), &away);
    return 0;
}
