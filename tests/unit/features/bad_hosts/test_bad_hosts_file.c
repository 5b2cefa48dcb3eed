/* SPDX-License-Identifier: Apache-2.0 */
/* The file of bad hosts on the disk: several writers at once, and what cannot be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "features/bad_hosts/bad_hosts_driver_test.h"

#define NOW 1795775585
#define WRITERS 8
#define ROUNDS 10

struct place {
    char folder[64];
    char *path, *link;
};

static int open_place(void **state)
{
    struct place *place = mem_alloc(sizeof(*place));
    snprintf(place->folder, sizeof(place->folder), "/tmp/hvdrun-unit-bad-XXXXXX");
    if (mkdtemp(place->folder) == NULL)
        return -1;
    place->path = mem_printf("%s/bad", place->folder);
    place->link = mem_printf("%s/link", place->folder);
    *state = place;
    return 0;
}

static int close_place(void **state)
{
    struct place *place = *state;
    unlink(place->path);
    unlink(place->link);
    int result = rmdir(place->folder);
    free(place->path);
    free(place->link);
    free(place);
    return result;
}

static int write_host(const char *path, const char *name, struct error *err)
{
    struct bad_host_list news = {.count = 0};
    bad_hosts_add(&news, &(struct bad_host){.name = (char *)name,
                                            .since_s = NOW,
                                            .until_s = NOW + BAD_HOSTS_SECONDS,
                                            .reason = (char *)"lost"});
    int result = bad_hosts_write_now(path, &news, NOW, err);
    bad_hosts_destroy(&news);
    return result;
}

static void write_many(const char *path, int writer)
{
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        snprintf(name, sizeof(name), "w%d-%d", writer, round);
        if (write_host(path, name, NULL) < 0)
            _exit(1);
    }
    _exit(0);
}

static void read_hosts(const char *path, struct bad_host_list *out)
{
    struct buf text AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    assert_int_equal(fd_read_file(path, &text, NULL), 0);
    assert_int_equal(bad_hosts_parse(buf_text(&text), text.length, path, NOW, out, NULL), 0);
}

/* What the readers see meanwhile is whole, too. */
static void test_many_writers(void **state)
{
    const struct place *place = *state;
    pid_t pids[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            write_many(place->path, i);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        struct bad_host_list seen = {.count = 0};
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        read_hosts(place->path, &seen);
        bad_hosts_destroy(&seen);
    }
    struct bad_host_list hosts = {.count = 0};
    read_hosts(place->path, &hosts);
    assert_int_equal(hosts.count, WRITERS * ROUNDS);
    bad_hosts_destroy(&hosts);
}

/* Also one that leads to a file that is not there yet. A group and a mode stay, too. */
static void test_a_link_stays(void **state)
{
    const struct place *place = *state;
    struct bad_host_list hosts = {.count = 0};
    struct stat before, after;
    assert_int_equal(symlink("bad", place->link), 0);
    assert_int_equal(write_host(place->link, "a", NULL), 0);
    assert_int_equal(chmod(place->path, 0664), 0);
    (void)!chown(place->path, (uid_t)-1, 7); /* where we may */
    assert_int_equal(stat(place->path, &before), 0);
    assert_int_equal(write_host(place->link, "b", NULL), 0);
    assert_int_equal(lstat(place->link, &after), 0);
    assert_true(S_ISLNK(after.st_mode));
    assert_int_equal(lstat(place->path, &after), 0);
    assert_int_equal(after.st_mode, before.st_mode);
    assert_int_equal(after.st_gid, before.st_gid);
    read_hosts(place->path, &hosts);
    assert_int_equal(hosts.count, 2);
    bad_hosts_destroy(&hosts);
}

static void test_what_cannot_be_written(void **state)
{
    const struct place *place = *state;
    struct error err = ERROR_INIT;
    struct bad_host_list hosts = {.count = 0};
    assert_int_equal(write_host(place->path, "a", NULL), 0);
    assert_int_equal(symlink("none/file", place->link), 0);
    assert_int_equal(write_host(place->link, "b", &err), -1);
    assert_non_null(strstr(err.text, "cannot "));
    read_hosts(place->path, &hosts);
    assert_int_equal(hosts.count, 1); /* as it was */
    bad_hosts_destroy(&hosts);
    assert_int_equal(write_host(place->folder, "b", &err), -1);
    char *deep AUTO_FREE = mem_printf("%s/none/bad", place->folder);
    assert_int_equal(write_host(deep, "b", &err), -1);
    assert_int_equal(write_host("/dev/null", "b", &err), -1);
    assert_string_equal(err.text, "/dev/null is not a file");
}

static void test_a_thread(void **state)
{
    const struct place *place = *state;
    struct bad_host_list news = {.count = 0}, hosts = {.count = 0};
    bad_hosts_add(&news, &(struct bad_host){.name = (char *)"a", .until_s = NOW + 1});
    struct bad_hosts_write *write = bad_hosts_write_begin(place->path, &news, NOW);
    assert_int_equal(news.count, 0);
    while (!bad_hosts_write_wait(write, 1000))
        ;
    assert_string_equal(write->news.items[0].name, "a");
    assert_int_equal(write->result, 0);
    bad_hosts_write_destroy(write);
    bad_hosts_write_destroy(NULL);
    read_hosts(place->path, &hosts);
    assert_int_equal(hosts.count, 1);
    bad_hosts_destroy(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_writers, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_written, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_a_link_stays, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_a_thread, open_place, close_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
