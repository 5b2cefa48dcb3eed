/* SPDX-License-Identifier: Apache-2.0 */
/* The real topology module as a part of a program, unpacked and opened in both ways. */
#include <dirent.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/modules.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "node/module/topology_module.h"

static void open_module(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        fail_msg("%s: %s", path, dlerror());
    assert_non_null(dlsym(handle, TOPOLOGY_MODULE_SYMBOL));
    dlclose(handle);
}

static void test_unpack(void **state)
{
    (void)state;
    struct buf file = BUF_INIT((size_t)64 << 20);
    struct error err = ERROR_INIT;
    char tmp[] = "/tmp/hvd-modules-XXXXXX";
    assert_non_null(mkdtemp(tmp));
    setenv("TMPDIR", tmp, 1);
    assert_int_equal(fd_read_file(HVDRUN_TOPOLOGY_MODULE, &file, &err), 0);
    const unsigned char *bytes = (const unsigned char *)buf_text(&file);
    struct module_image image = {"hvdrun-topology.so", bytes, bytes + file.length};
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        char *path = modules_unpack(&image, in_memory != 0, &err);
        if (path == NULL)
            fail_msg("%s", err.text);
        open_module(path);
        free(path);
        assert_int_equal(rmdir(tmp), 0); /* nothing lies there, not even a folder */
        assert_int_equal(mkdir(tmp, 0700), 0);
    }
    rmdir(tmp);
    unsetenv("TMPDIR");
    buf_destroy(&file);
}

static void test_beside(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct modules *modules = modules_create("/opt/lib/hvdrun");
    const char *path = modules_find(modules, "hvdrun-pmix.so", &err);
    assert_string_equal(path, "/opt/lib/hvdrun/hvdrun-pmix.so");
    assert_string_equal(modules_find(modules, "hvdrun-topology.so", &err),
                        "/opt/lib/hvdrun/hvdrun-topology.so");
    assert_ptr_equal(modules_find(modules, "hvdrun-pmix.so", &err), path); /* once for all */
    modules_destroy(modules);
    modules_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unpack),
        cmocka_unit_test(test_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
