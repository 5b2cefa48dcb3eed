/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/env/scrub.h"

static void expect(const char *pair, const char *wanted)
{
    struct buf text AUTO_BUF = BUF_INIT(1000);
    secret_mask(pair, &text);
    assert_string_equal(buf_text(&text), wanted);
}

static void test_masks(void **state)
{
    (void)state;
    expect("HF_TOKEN=hf_abc", "HF_TOKEN=(hidden, 6 bytes)");
    expect("aws_secret_access=x=y", "aws_secret_access=(hidden, 3 bytes)");
    expect("DB_PASSWORD=", "DB_PASSWORD=(hidden, 0 bytes)");
    expect("PGPASSWD=1", "PGPASSWD=(hidden, 1 bytes)");
    expect("WANDB_API_KEY=42", "WANDB_API_KEY=(hidden, 2 bytes)");
    expect("GOOGLE_CREDENTIALS=f", "GOOGLE_CREDENTIALS=(hidden, 1 bytes)");
    expect("PROXY_AUTH=f", "PROXY_AUTH=(hidden, 1 bytes)");
    expect("COOKIE=f", "COOKIE=(hidden, 1 bytes)");
    expect("LANG=TOKEN", "LANG=TOKEN"); /* the name counts */
    expect("PATH=/bin", "PATH=/bin");
    expect("TOKEN", "TOKEN");
    expect("", "");
    assert_false(secret_is_name("TOKENX", 4));
    assert_true(secret_is_name("TOKENX", 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_masks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
