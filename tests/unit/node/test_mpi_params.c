/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "node/route.h"

static void test_text(void **state)
{
    (void)state;
    assert_true(mpi_params_text_chooses_tcp("btl_tcp_if_include=eth0"));
    assert_true(mpi_params_text_chooses_tcp("# x\n\n \tbtl_tcp_if_exclude \t= lo\n"));
    assert_true(mpi_params_text_chooses_tcp("btl = tcp\nbtl_tcp_if_exclude=\n"));
    assert_false(mpi_params_text_chooses_tcp(""));
    assert_false(mpi_params_text_chooses_tcp("# btl_tcp_if_include = eth0\n"));
    assert_false(mpi_params_text_chooses_tcp("btl_tcp_if_include"));
    assert_false(mpi_params_text_chooses_tcp("btl_tcp_if_include\n= eth0"));
    assert_false(mpi_params_text_chooses_tcp("btl_tcp_if_includes = eth0\n"));
    assert_false(mpi_params_text_chooses_tcp("oob_tcp_if_include = eth0\n"));
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_files(void **state)
{
    (void)state;
    char root[] = "/tmp/hvdrun-test-XXXXXX";
    assert_non_null(mkdtemp(root));
    if (mpi_params_choose_tcp(NULL,
                              NULL)) { /* this machine's own files do: nothing to tell apart */
        rmdir(root);
        skip();
    }
    char *home AUTO_FREE = mem_printf("%s/.openmpi", root),
               *etc AUTO_FREE = mem_printf("%s/etc", root);
    char *path AUTO_FREE = mem_printf("/nonexistent/bin:bin:%s/bin", root);
    assert_int_equal(mkdir(home, 0700), 0);
    assert_int_equal(mkdir(etc, 0700), 0);
    assert_false(mpi_params_choose_tcp(root, path));
    write_file(home, "mca-params.conf", "btl_tcp_if_include = eth0\n");
    assert_true(mpi_params_choose_tcp(root, NULL));
    assert_false(mpi_params_choose_tcp("/nonexistent", path));
    write_file(etc, "openmpi-mca-params.conf", "btl_tcp_if_exclude = docker0\n");
    assert_true(mpi_params_choose_tcp(NULL, path));
    assert_false(mpi_params_choose_tcp(NULL, "/nonexistent/bin::"));
    char *users AUTO_FREE = mem_printf("%s/mca-params.conf", home);
    char *other AUTO_FREE = mem_printf("%s/openmpi-mca-params.conf", etc);
    assert_int_equal(unlink(users) + unlink(other) + rmdir(home) + rmdir(etc) + rmdir(root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
