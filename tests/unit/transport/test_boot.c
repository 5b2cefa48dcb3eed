/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way from a shell to an agent's HELLO, with every shell that this machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "boot_fixture.h"

#define LIMIT_MS 15000

struct shell {
    const char *argv[3];
};

static const struct shell shells[] = {
    {{"/bin/sh"}},   {{"/bin/dash"}},          {{"/bin/bash"}},  {{"/bin/bash", "--posix"}},
    {{"/bin/mksh"}}, {{"/bin/busybox", "sh"}}, {{"/bin/ksh93"}},
};

static struct agent_image image;

static int setup(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    if (agent_image_open(HVDRUN_AGENT_PROGRAM, &image, &err) < 0)
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    agent_image_close(&image);
    return 0;
}

static struct call run_with(const struct host *host, struct agent_image *what, char *const *argv,
                            int64_t limit_ms)
{
    struct error err = ERROR_INIT;
    struct loop *loop = loop_create(&err);
    assert_non_null(loop);
    struct call call = {.loop = NULL};
    call_begin(&call, loop, host, what, argv, limit_ms);
    /* `call` is at its place until the loop is over. */
    run_loop(loop);
    assert_int_equal(call.ups + call.fails, 1);
    if (call.ups == 1)
        call_expect_hello(&call);
    boot_destroy(call.boot);
    call.boot = NULL;
    int wait_status = call_end(&call);
    if (call.ups == 1) /* the agent ends well when its driver hangs up */
        assert_true(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0);
    loop_destroy(loop);
    return call;
}

static struct call run(const struct host *host, const char *shell)
{
    char *argv[] = {(char *)shell, NULL};
    return run_with(host, &image, argv, LIMIT_MS);
}

static void is_up(const struct call *call)
{
    if (call->ups != 1)
        fail_msg("%s: %s", transport_stage_name(call->stage), call->why);
}

static void test_every_shell(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (access(shells[i].argv[0], X_OK) < 0)
            continue;
        struct host host;
        host_open(&host);
        struct call call = run_with(&host, &image, (char *const *)shells[i].argv, LIMIT_MS);
        if (call.ups != 1)
            fail_msg("%s: %s: %s", shells[i].argv[0], transport_stage_name(call.stage), call.why);
        assert_int_equal(call.sends, 1);
        char *kept AUTO_FREE = host_find(&host, "run/hvdrun");
        assert_non_null(kept);
        struct stat info;
        assert_int_equal(stat(kept, &info), 0);
        assert_int_equal(info.st_mode & 07777, 0700);
        assert_int_equal((size_t)info.st_size, image.length);
        call = run_with(&host, &image, (char *const *)shells[i].argv, LIMIT_MS);
        is_up(&call);
        assert_int_equal(call.sends, 0); /* it was found */
        host_close(&host);
    }
}

static void test_no_sha256sum(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    /* a PATH with all but this one program */
    char *fill AUTO_FREE = mem_printf("ln -s /usr/bin/* /bin/* %s/bin/ 2>/dev/null; "
                                      "rm -f %s/bin/sha256sum",
                                      host.root, host.root);
    assert_true(run_line(fill) >= 0);
    char *path AUTO_FREE = mem_printf("PATH=%s/bin", host.root);
    strv_env_put(&host.env, path);
    struct call call = run(&host, "/bin/sh");
    assert_int_equal(call.fails, 1);
    assert_non_null(strstr(call.why, "the host has no sha256sum"));
    host_close(&host);
}

static void test_damaged_is_replaced(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    struct call call = run(&host, "/bin/sh");
    is_up(&call);
    char *kept AUTO_FREE = host_find(&host, "run/hvdrun");
    int fd = open(kept, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "damage", 6, 1000), 6);
    close(fd);
    call = run(&host, "/bin/sh");
    is_up(&call);
    assert_int_equal(call.sends, 1);
    call = run(&host, "/bin/sh");
    is_up(&call);
    assert_int_equal(call.sends, 0);
    host_close(&host);
}

/* The second start on a host costs it one program beside the agent: what has not changed since it
 * was checked is not read again. Whatever changes is. */
static void test_checked_once(void **state)
{
    (void)state;
    static const char *const watched[] = {"id", "uname", "getconf", "find", "ls", "sha256sum"};
    struct host host;
    host_open(&host);
    struct call call = run(&host, "/bin/sh");
    is_up(&call);
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++) {
        char *text AUTO_FREE = mem_printf("#!/bin/sh\necho %s >>%s/used\nexec /usr/bin/%s \"$@\"\n",
                                          watched[i], host.root, watched[i]);
        host_program(&host, watched[i], text);
    }
    call = run(&host, "/bin/sh");
    is_up(&call);
    host_expect_used(&host, "ls\n");

    char *kept AUTO_FREE = host_find(&host, "run/hvdrun");
    const struct timespec long_ago[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, kept, long_ago, 0), 0); /* its bytes are the same */
    call = run(&host, "/bin/sh");
    is_up(&call);
    assert_int_equal(call.sends, 0);
    host_expect_used(&host, "ls\nls\nls\nsha256sum\nfind\nls\n");
    call = run(&host, "/bin/sh");
    is_up(&call);
    host_expect_used(&host, "ls\n");
    host_close(&host);
}

/* ls aligns its columns. How wide they are depends on what else is in the folder. */
static void test_checked_with_other_columns(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    struct call call = run(&host, "/bin/sh");
    is_up(&call);
    char *wide AUTO_FREE = mem_printf(
        "#!/bin/sh\necho ls >>%s/used\n/usr/bin/ls \"$@\" | sed 's/ /  /g'\n", host.root);
    host_program(&host, "ls", wide);
    call = run(&host, "/bin/sh");
    is_up(&call);
    assert_int_equal(call.sends, 0);
    host_expect_used(&host, "ls\n"); /* once: nothing was checked again */
    host_close(&host);
}

/* What others may write to is not run, though it has the right bytes. */
static void test_untrusted_is_not_run(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    struct call call = run(&host, "/bin/sh");
    is_up(&call);
    char *folder AUTO_FREE = host_path(&host, "run/hvdrun");
    assert_int_equal(chmod(folder, 0770), 0);
    call = run(&host, "/bin/sh");
    is_up(&call);
    assert_int_equal(call.sends, 1); /* to the next place */
    char *tmp AUTO_FREE = mem_printf("tmp/hvdrun-%u", (unsigned)geteuid());
    char *kept AUTO_FREE = host_find(&host, tmp);
    assert_non_null(kept);
    assert_int_equal(chmod(kept, 0720), 0);
    call = run(&host, "/bin/sh");
    is_up(&call);
    assert_int_equal(call.sends, 1);
    host_close(&host);
}

/* Nor does it help that somebody says it was checked. */
static void test_a_forged_memory(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    struct call call = run(&host, "/bin/sh");
    is_up(&call);
    char *kept AUTO_FREE = host_find(&host, "run/hvdrun");
    assert_non_null(kept);
    assert_int_equal(chmod(kept, 0777), 0);
    const char *rest = strstr(kept, "/hvdrun-agent-");
    assert_non_null(rest);
    char *command AUTO_FREE =
        mem_printf("printf '%%s %%s\\n' \"$(cat /proc/sys/kernel/random/boot_id)\" \"$(LC_ALL=C "
                   "ls -ldnic --time-style=full-iso %s)\" >%.*s/checked-%s",
                   kept, (int)(rest - kept), kept, rest + strlen("/hvdrun-agent-"));
    assert_int_equal(run_line(command), 0);
    call = run(&host, "/bin/sh");
    is_up(&call);
    assert_int_equal(call.sends, 1);
    host_close(&host);
}

static void test_link_is_not_followed(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    char *elsewhere AUTO_FREE = host_path(&host, "elsewhere");
    char *folder AUTO_FREE = host_path(&host, "run/hvdrun");
    assert_int_equal(mkdir(elsewhere, 0700), 0);
    assert_int_equal(symlink(elsewhere, folder), 0);
    struct call call = run(&host, "/bin/sh");
    is_up(&call);
    assert_null(host_find(&host, "elsewhere"));
    host_close(&host);
}

/* The first place cannot be written to: a file stands where the folder should be. */
static void test_next_place(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    char *file AUTO_FREE = host_path(&host, "run/hvdrun");
    close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    char *tmp AUTO_FREE = mem_printf("%s/tmp/hvdrun-%u", host.root, (unsigned)geteuid());
    close(open(tmp, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    struct call call = run(&host, "/bin/sh");
    is_up(&call);
    char *kept AUTO_FREE = host_find(&host, "home/.cache/hvdrun");
    assert_non_null(kept);
    char *caches AUTO_FREE = host_path(&host, "home/.cache");
    remove_tree(caches);
    close(open(caches, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    call = run(&host, "/bin/sh");
    assert_int_equal(call.fails, 1);
    assert_non_null(strstr(call.why, file));
    assert_non_null(strstr(call.why, tmp));
    assert_non_null(strstr(call.why, caches));
    assert_non_null(strstr(call.why, "TMPDIR"));
    host_close(&host);
}

/* A file system that is full and one that runs no programs: the bytes are asked for again. */
static void test_full_and_noexec(void **state)
{
    (void)state;
    char *const unshare = geteuid() == 0 ? "-m" : "-rm";
    char *can AUTO_FREE = mem_printf("unshare %s mount -t tmpfs none /mnt 2>/dev/null", unshare);
    if (run_line(can) != 0)
        skip(); /* no mounts of our own here */
    struct host host;
    host_open(&host);
    char *mounts AUTO_FREE = mem_printf("mount -t tmpfs -o size=64k,mode=700 none %s/run && "
                                        "mount -t tmpfs -o noexec,mode=700 none %s/tmp && "
                                        "exec /bin/sh",
                                        host.root, host.root);
    char *argv[] = {"/usr/bin/unshare", unshare, "/bin/sh", "-c", mounts, NULL};
    struct call call = run_with(&host, &image, argv, LIMIT_MS);
    is_up(&call);
    assert_int_equal(call.sends, 3);
    char *kept AUTO_FREE = host_find(&host, "home/.cache/hvdrun");
    assert_non_null(kept);
    char *caches AUTO_FREE = host_path(&host, "home/.cache");
    remove_tree(caches);
    close(open(caches, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    call = run_with(&host, &image, argv, LIMIT_MS);
    assert_int_equal(call.fails, 1);
    assert_int_equal(call.stage, STAGE_SEND);
    assert_non_null(strstr(call.why, "No space left on device"));
    assert_non_null(strstr(call.why, "cannot be run there"));
    host_close(&host);
}

static void test_noise(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    char *quiet[] = {"/bin/sh", "-c",
                     "echo Welcome; printf '\\033[31mno newline here: '; exec /bin/sh", NULL};
    struct call call = run_with(&host, &image, quiet, LIMIT_MS);
    is_up(&call);
    char *loud[] = {"/bin/sh", "-c", "yes this never ends", NULL};
    call = run_with(&host, &image, loud, LIMIT_MS);
    assert_int_equal(call.fails, 1);
    assert_non_null(strstr(call.why, "login files"));
    assert_non_null(strstr(call.why, "this never ends"));
    char *dead[] = {"/bin/sh", "-c", "echo 'This account is \033[1m expired.'; exit 1", NULL};
    call = run_with(&host, &image, dead, LIMIT_MS);
    assert_int_equal(call.fails, 1);
    assert_int_equal(call.stage, STAGE_START);
    assert_non_null(strstr(call.why, "This account is ?[1m expired."));
    char *silent[] = {"/bin/sleep", "100", NULL};
    struct error err = ERROR_INIT;
    struct loop *loop = loop_create(&err);
    struct call waiting = {.loop = NULL};
    call_begin(&waiting, loop, &host, &image, silent, 100);
    run_loop(loop);
    assert_int_equal(waiting.fails, 1);
    assert_non_null(strstr(waiting.why, "no shell"));
    kill(waiting.pid, SIGKILL);
    call_end(&waiting);
    loop_destroy(loop);
    host_close(&host);
}

static void test_foreign_machine(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    host_program(&host, "uname", "#!/bin/sh\ncase $1 in -m) echo pdp11;; *) echo Linux;; esac\n");
    struct call call = run(&host, "/bin/sh");
    assert_int_equal(call.fails, 1);
    assert_int_equal(call.sends, 0);
    assert_int_equal(call.stage, STAGE_START);
    assert_non_null(strstr(call.why, "pdp11"));
    assert_non_null(strstr(call.why, "install hvdrun"));

    /* ... which then helps: its own agent is used */
    char *folders AUTO_FREE = mem_printf("mkdir -p %s/opt/bin %s/opt/lib/hvdrun && "
                                         "cp '" HVDRUN_AGENT_PROGRAM "' %s/opt/lib/hvdrun/ && "
                                         "ln -s /bin/true %s/opt/bin/hvdrun",
                                         host.root, host.root, host.root, host.root);
    assert_int_equal(run_line(folders), 0);
    char *path AUTO_FREE = mem_printf("PATH=%s/bin:%s/opt/bin:/usr/bin:/bin", host.root, host.root);
    strv_env_put(&host.env, path);
    call = run(&host, "/bin/sh");
    is_up(&call);
    assert_int_equal(call.sends, 0);
    host_close(&host);
}

static void test_musl_and_old_glibc(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    host_program(&host, "getconf", "#!/bin/sh\nexit 1\n");
    host_program(&host, "ldd", "#!/bin/sh\necho 'musl libc (x86_64)' >&2; exit 1\n");
    struct call call = run(&host, "/bin/sh");
    assert_int_equal(call.fails, 1);
    assert_non_null(strstr(call.why, "musl"));
    host_program(&host, "ldd", "#!/bin/sh\necho 'ldd (GNU libc) 2.17'\n");
    call = run(&host, "/bin/sh");
    assert_int_equal(call.fails, 1);
    assert_non_null(strstr(call.why, "2.17"));
    host_close(&host);
}

static void test_eight_share_one_home(void **state)
{
    (void)state;
    enum { HOSTS = 8 };
    struct host host;
    struct call calls[HOSTS] = {{.loop = NULL}};
    struct error err = ERROR_INIT;
    struct loop *loop = loop_create(&err);
    host_open(&host);
    strv_env_unset(&host.env, "XDG_RUNTIME_DIR");
    strv_env_put(&host.env, "TMPDIR=/proc"); /* no place there */
    int open_calls = HOSTS;
    char *argv[] = {"/bin/sh", NULL};
    for (int i = 0; i < HOSTS; i++) {
        calls[i].open_calls = &open_calls;
        call_begin(&calls[i], loop, &host, &image, argv, LIMIT_MS);
    }
    run_loop(loop);
    for (int i = 0; i < HOSTS; i++) {
        is_up(&calls[i]);
        call_expect_hello(&calls[i]);
        call_end(&calls[i]);
    }
    char *kept AUTO_FREE = host_find(&host, "home/.cache/hvdrun");
    assert_non_null(kept);
    loop_destroy(loop);
    host_close(&host);
}

static void test_old_images_go(void **state)
{
    (void)state;
    struct host host;
    host_open(&host);
    char *prepare AUTO_FREE =
        mem_printf("mkdir -m 700 %s/run/hvdrun && cd %s/run/hvdrun && touch -d '40 days ago' "
                   "hvdrun-agent-0.0.1-dead .hvdrun-agent-0.0.1-dead.job.1",
                   host.root, host.root);
    assert_int_equal(run_line(prepare), 0);
    struct call call = run(&host, "/bin/sh");
    is_up(&call);
    char *kept AUTO_FREE = host_find(&host, "run/hvdrun"); /* fails when there is another */
    assert_non_null(kept);
    host_close(&host);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shell),
        cmocka_unit_test(test_no_sha256sum),
        cmocka_unit_test(test_damaged_is_replaced),
        cmocka_unit_test(test_untrusted_is_not_run),
        cmocka_unit_test(test_a_forged_memory),
        cmocka_unit_test(test_link_is_not_followed),
        cmocka_unit_test(test_next_place),
        cmocka_unit_test(test_full_and_noexec),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_foreign_machine),
        cmocka_unit_test(test_musl_and_old_glibc),
        cmocka_unit_test(test_eight_share_one_home),
        cmocka_unit_test(test_old_images_go),
        cmocka_unit_test(test_checked_once),
        cmocka_unit_test(test_checked_with_other_columns),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
