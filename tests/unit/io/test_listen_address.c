/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "io/listen_address.h"

static void expect(const char *text, const char *url)
{
    struct listen_address address;
    struct error err = ERROR_INIT;
    if (listen_address_parse(text, &address, &err) < 0)
        fail_msg("'%s' was refused: %s", text, err.text);
    char *got = listen_address_url(&address);
    assert_string_equal(got, url);
    assert_true(address.length > 0);
    free(got);
}

static void refuse(const char *text)
{
    struct listen_address address;
    struct error err = ERROR_INIT;
    if (listen_address_parse(text, &address, &err) == 0)
        fail_msg("'%s' was accepted", text);
    assert_true(err.text[0] != '\0');
    assert_int_equal(err.status, STATUS_USAGE);
}

static void test_accepted(void **state)
{
    (void)state;
    expect("9400", "http://127.0.0.1:9400");
    expect("0", "http://127.0.0.1:0");
    expect("localhost:65535", "http://127.0.0.1:65535");
    expect("0.0.0.0:9400", "http://0.0.0.0:9400");
    expect("[::1]:9400", "http://[::1]:9400");
    expect("[::]:1", "http://[::]:1");
    expect("/run/x.sock", "unix:/run/x.sock");
    expect("./x:1", "unix:./x:1");
    expect("unix:x.sock", "unix:x.sock");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",        "65536",    "-1",       "x",           ":9400",
                                        "::1:9",   "[::1]",    "[::1]9",   "[1.2.3.4]:9", "a:9400",
                                        "1.2.3:9", "1.2.3.4:", "1.2.3.4",  "unix:",       "9400 ",
                                        "[]:9",    "9400x",    "1.2.3.4:x"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        refuse(texts[i]);
    char path[200];
    memset(path, '/', sizeof(path));
    path[108] = '\0';
    refuse(path);
    path[107] = '\0';
    struct listen_address address;
    assert_int_equal(listen_address_parse(path, &address, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
