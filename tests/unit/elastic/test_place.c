/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "elastic/place_test.h"

static void test_an_answer(void **state)
{
    (void)state;
    struct engine_place place;
    assert_int_equal(elastic_place_parse("5,8,1,4,1,2", &place, NULL), HVD_OK);
    assert_int_equal(place.rank, 5);
    assert_int_equal(place.size, 8);
    assert_int_equal(place.local_rank, 1);
    assert_int_equal(place.local_size, 4);
    assert_int_equal(place.cross_rank, 1);
    assert_int_equal(place.cross_size, 2);
    assert_int_equal(elastic_place_parse("0,1,0,1,0,1\n", &place, NULL), HVD_OK);
    assert_int_equal(elastic_place_parse("-1,-1,-1,-1,-1,-1", &place, NULL), HVD_ERR_REMOVED);
}

static void test_bad_answers(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "0",
                                      "0,1,0,1,0",
                                      "0,1,0,1,0,",
                                      "0,1,0,1,0,1,2",
                                      "0,1,0,1,0,1\n\n",
                                      "1,1,0,1,0,1",
                                      "0,1,1,1,0,1",
                                      "0,1,0,1,1,1",
                                      "0,0,0,0,0,0",
                                      "0,1,0,-1,0,1",
                                      "a,1,0,1,0,1",
                                      "0,1,0,1,0,1x",
                                      "0,,0,1,0,1",
                                      "0,99999999999999999999,0,1,0,1",
                                      "-2,1,0,1,0,1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct engine_place place;
        struct error err = ERROR_INIT;
        assert_int_equal(elastic_place_parse(bad[i], &place, &err), HVD_ERR_ENGINE);
        assert_non_null(strstr(err.text, "not a place"));
    }
}

static const char *const *variables; /* of the test that runs */

static char *get(const char *name)
{
    for (size_t i = 0; variables[i] != NULL; i += 2) {
        if (strcmp(variables[i], name) == 0)
            return (char *)variables[i + 1];
    }
    return NULL;
}

static int read_self(struct elastic_self *self, const char *const *list, struct error *err)
{
    variables = list;
    return elastic_self_read(self, get, err);
}

static void test_self(void **state)
{
    (void)state;
    struct elastic_self self;
    struct error err = ERROR_INIT;
    const char *whole[] = {"HOROVOD_ELASTIC",
                           "1",
                           "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                           "127.0.0.1",
                           "HOROVOD_GLOO_RENDEZVOUS_PORT",
                           "4321",
                           "HOROVOD_HOSTNAME",
                           "node1",
                           "HOROVOD_LOCAL_RANK",
                           "2",
                           "HOROVOD_ELASTIC_TIMEOUT",
                           "10",
                           NULL};
    assert_int_equal(read_self(&self, whole, &err), 0);
    assert_string_equal(self.address, "127.0.0.1");
    assert_int_equal(self.port, 4321);
    assert_string_equal(self.host, "node1");
    assert_int_equal(self.local_rank, 2);
    assert_true(self.timeout_ms >= 10 * 1000);
    whole[1] = "0"; /* not elastic */
    assert_int_equal(read_self(&self, whole, &err), 0);
    assert_null(self.address);
    whole[1] = "yes";
    assert_int_equal(read_self(&self, whole, &err), -1);
    assert_non_null(strstr(err.text, "HOROVOD_ELASTIC"));
    whole[1] = "1";
    whole[7] = "a/b"; /* would be another path in the store */
    assert_int_equal(read_self(&self, whole, &err), -1);
    assert_int_equal(read_self(&self, (const char *[]){NULL}, &err), 0);
    assert_null(self.address);
}

static void test_export(void **state)
{
    (void)state;
    elastic_place_export(&(struct engine_place){5, 8, 1, 4, 3, 7});
    assert_string_equal(getenv("HOROVOD_RANK"), "5");
    assert_string_equal(getenv("HOROVOD_SIZE"), "8");
    assert_string_equal(getenv("HOROVOD_LOCAL_RANK"), "1");
    assert_string_equal(getenv("HOROVOD_LOCAL_SIZE"), "4");
    assert_string_equal(getenv("HOROVOD_CROSS_RANK"), "3");
    assert_string_equal(getenv("HOROVOD_CROSS_SIZE"), "7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer),
        cmocka_unit_test(test_bad_answers),
        cmocka_unit_test(test_self),
        cmocka_unit_test(test_export),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
