/* SPDX-License-Identifier: Apache-2.0 */
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

#include "base/mem.h"
#include "io/watch.h"
#include "loop_fixture.h"

#define TURNS 5

struct fixture {
    char root[64];
    struct loop *loop;
    struct watch *watch;
    int parts, wholes;
    bool destroy_in_call;
};

static void changed(void *context, bool whole)
{
    struct fixture *f = context;
    f->parts += !whole;
    f->wholes += whole;
    if (f->destroy_in_call) {
        watch_destroy(f->watch);
        f->watch = NULL;
    }
}

static void shell(const struct fixture *f, const char *line)
{
    char *command AUTO_FREE = mem_printf("cd %s && { %s\n}", f->root, line);
    int wait_status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    assert_int_equal(wait_status, 0);
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    snprintf(f->root, sizeof(f->root), "/tmp/hvd-watch-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    f->loop = loop_create(NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    watch_destroy(f->watch);
    loop_destroy(f->loop);
    shell(f, "cd / && rm -r \"$OLDPWD\"");
    free(f);
    return 0;
}

static void start(struct fixture *f, const char *name)
{
    char *path AUTO_FREE = mem_printf("%s/%s", f->root, name);
    f->watch = watch_create(f->loop, path, changed, f);
    assert_non_null(f->watch);
}

enum { NOTHING, PART, WHOLE };

/* What is heard last of what the line does. */
static void check(struct fixture *f, const char *line, int what)
{
    f->parts = f->wholes = 0;
    shell(f, line);
    run_turns(f->loop, TURNS);
    if (what == NOTHING && f->parts + f->wholes > 0)
        fail_msg("'%s' was heard", line);
    if (what == PART && (f->parts == 0 || f->wholes > 0))
        fail_msg("'%s': %d parts, %d wholes", line, f->parts, f->wholes);
    if (what == WHOLE && f->wholes == 0)
        fail_msg("'%s': %d parts, %d wholes", line, f->parts, f->wholes);
}

static void test_file(void **state)
{
    struct fixture *f = *state;
    shell(f, "echo a >hosts");
    start(f, "hosts");
    check(f, "cat hosts >/dev/null; ls >/dev/null", NOTHING);
    check(f, "echo b >other; mv other another; rm another; mkdir hosts.d; ln -s hosts x", NOTHING);
    check(f, "echo b >>hosts", WHOLE);
    check(f, ": >hosts", WHOLE);
    check(f, "echo c >new; mv new hosts", WHOLE);
    check(f, "echo d >>hosts", WHOLE);
    check(f, "mv hosts old", WHOLE);
    check(f, "echo d >>old", NOTHING);
    check(f, "mv old hosts", WHOLE);
    check(f, "rm hosts", WHOLE);
    check(f, "echo e >hosts", WHOLE);
    check(f, "ln hosts same; echo f >>same", WHOLE);
    check(f, "truncate -s 0 hosts; rm same", WHOLE);
}

static void test_open_for_writing(void **state)
{
    struct fixture *f = *state;
    shell(f, "echo a >hosts");
    start(f, "hosts");
    char *path AUTO_FREE = mem_printf("%s/hosts", f->root);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    run_turns(f->loop, TURNS);
    assert_int_equal(f->parts, 1); /* emptied */
    fputs("b\n", file);
    fflush(file);
    run_turns(f->loop, TURNS);
    assert_int_equal(f->parts, 2);
    assert_int_equal(f->wholes, 0);
    fclose(file);
    run_turns(f->loop, TURNS);
    assert_true(f->wholes > 0);
    check(f, "rm hosts; mkfifo hosts", PART); /* made, and never closed by a writer */
}

static void test_links(void **state)
{
    struct fixture *f = *state;
    shell(f, "mkdir v1 v2 && echo a >v1/hosts && echo b >v2/hosts && ln -s v1 data && "
             "ln -s data/hosts hosts");
    start(f, "hosts");
    check(f, "echo c >>v2/hosts", NOTHING);
    check(f, "echo c >>v1/hosts", WHOLE);
    check(f, "ln -s v2 tmp && mv -T tmp data", WHOLE);
    check(f, "echo c >>v1/hosts", NOTHING);
    check(f, "echo c >new && mv new v2/hosts", WHOLE);
    check(f, "echo c >real && ln -s real tmp && mv -T tmp hosts", WHOLE);
    check(f, "echo c >>v2/hosts; rm data", NOTHING);
    check(f, "echo c >>real", WHOLE);
}

static void test_nothing_there(void **state)
{
    struct fixture *f = *state;
    start(f, "etc/hosts");
    check(f, "mkdir etc; echo a >etc/hosts", NOTHING);
    watch_refresh(f->watch);
    check(f, "echo a >>etc/hosts", WHOLE);
    check(f, "mv etc old; mkdir etc; echo a >etc/hosts", NOTHING);
    watch_refresh(f->watch);
    check(f, "rm etc/hosts; ln -s hosts etc/hosts", PART); /* a link to itself */
    check(f, "rm etc/hosts; echo b >etc/hosts", WHOLE);
}

static void test_destroyed_in_call(void **state)
{
    struct fixture *f = *state;
    shell(f, "echo a >hosts");
    start(f, "hosts");
    f->destroy_in_call = true;
    check(f, "echo b >>hosts; mv hosts x; mv x hosts", WHOLE);
    assert_int_equal(f->parts + f->wholes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_for_writing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroyed_in_call, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
