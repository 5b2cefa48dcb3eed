/* SPDX-License-Identifier: Apache-2.0 */
/* known_hosts files: what we append, and that each is read once, and again when it was changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/inotify.h>
#include <sys/resource.h>

#include "ssh/ssh_fixture.h"
#include "transport/ssh_module/fields.h"
#include "transport/ssh_module/known_hosts.h"

#define ED_BASE64 "AAAAC3NzaC1lZDI1NTE5AAAAIPi8n9KZ7fdBVWG2HQFAJjZQEBgzUXJHEqk8yNWYdG1j"
#define ED "ssh-ed25519 " ED_BASE64

struct files {
    char *folder, *path;
    char *list[4];
    struct ssh_known_files *known_files;
    unsigned char room[256];
    struct byte_view key;
};

static void begin(struct files *f)
{
    *f = (struct files){.folder = place_make(), .known_files = known_files_create()};
    f->path = place_path(f->folder, "known_hosts");
    f->list[0] = f->path;
    f->list[1] = (char *)"/nonexistent/known_hosts";
    f->list[2] = f->folder;
    ssize_t length = base64_decode(ED_BASE64, sizeof ED_BASE64 - 1, f->room);
    assert_true(length > 0);
    f->key = (struct byte_view){f->room, (size_t)length};
}

static void finish(struct files *f)
{
    known_files_destroy(f->known_files);
    free(f->path);
    place_remove(f->folder);
}

static struct known_answer look_up(struct files *f, const char *name)
{
    struct known_hosts *known = known_hosts_create(name, 22);
    struct error err = ERROR_INIT;
    assert_int_equal(known_files_find(f->known_files, f->list, known, &err), 0);
    struct known_answer answer = known_hosts_check(known, f->key);
    known_hosts_destroy(known);
    return answer; /* of which only numbers are looked at */
}

static void append(struct files *f, const char *name, bool hashed)
{
    struct known_hosts *known = known_hosts_create(name, 22);
    struct error err = ERROR_INIT;
    assert_int_equal(known_files_append(f->known_files, f->path, known, f->key, hashed, &err), 0);
    known_hosts_destroy(known);
}

/* How often the file was opened since the last time that we asked. */
static int opened(int watch)
{
    union {
        struct inotify_event event;
        char bytes[65536];
    } room;
    ssize_t length = read(watch, room.bytes, sizeof room.bytes);
    int count = 0;
    for (ssize_t at = 0; at < length;) {
        struct inotify_event event;
        memcpy(&event, room.bytes + at, sizeof event);
        count += (event.mask & IN_OPEN) != 0;
        at += (ssize_t)(sizeof event + event.len);
    }
    return count;
}

/* Names of one letter, and a host that is named without its port. */
static void short_names_and_ports(void **state)
{
    (void)state;
    struct files f;
    struct error err = ERROR_INIT;
    begin(&f);
    place_write(f.path, "x " ED "\nn1,y " ED "\nn9 " ED "\n", false);
    assert_int_equal(look_up(&f, "x").line, 1);
    assert_int_equal(look_up(&f, "y").line, 2);
    struct known_hosts *known = known_hosts_create("n9", 2222);
    assert_int_equal(known_files_find(f.known_files, f.list, known, &err), 0);
    struct known_answer answer = known_hosts_check(known, f.key);
    assert_int_equal(answer.verdict, KNOWN_MATCH);
    assert_int_equal(answer.line, 3);
    known_hosts_destroy(known);
    finish(&f);
}

/* inotify makes one event of equal ones that follow each other, so each look is counted by itself.
 */
static void a_file_is_read_once_for_many_hosts(void **state)
{
    (void)state;
    struct files f;
    begin(&f);
    place_write(f.path, "n1 " ED "\nn2 " ED "\nn3 " ED "\n", false);
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), reads = 0;
    assert_true(watch >= 0);
    assert_true(inotify_add_watch(watch, f.path, IN_OPEN) >= 0);

    for (int i = 0; i < 20; i++) {
        char *AUTO_FREE name = mem_printf("n%d", i % 4);
        struct known_answer answer = look_up(&f, name);
        assert_int_equal(answer.verdict, i % 4 == 0 ? KNOWN_UNKNOWN : KNOWN_MATCH);
        assert_int_equal(answer.line, i % 4);
        reads += opened(watch);
    }
    assert_int_equal(reads, 1);

    append(&f, "n0", true);
    assert_int_equal(opened(watch), 1); /* by append() */
    assert_int_equal(look_up(&f, "n0").line, 4);
    assert_int_equal(look_up(&f, "n1").line, 1);
    assert_int_equal(look_up(&f, "n0").line, 4);
    assert_int_equal(opened(watch), 1);
    fd_close(&watch);
    finish(&f);
}

/* Else a host whose key is revoked or has changed would be a new one, and so would all that follow.
 */
static void a_file_that_cannot_be_read_now_is_not_an_empty_one(void **state)
{
    (void)state;
    struct files f;
    struct rlimit was, none = {0, 0};
    struct error err = ERROR_INIT;
    begin(&f);
    place_write(f.path, "@revoked * " ED "\n", false);
    struct known_hosts *known = known_hosts_create("n1", 22);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none.rlim_max = was.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int result = known_files_find(f.known_files, f.list, known, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    known_hosts_destroy(known);
    assert_int_equal(result, -1);
    assert_non_null(strstr(err.text, f.path));
    assert_int_equal(look_up(&f, "n1").verdict, KNOWN_REVOKED);
    finish(&f);
}

static void sees_what_others_do_to_a_file(void **state)
{
    (void)state;
    struct files f;
    begin(&f);
    assert_int_equal(look_up(&f, "n1").verdict, KNOWN_UNKNOWN); /* there is none */
    place_write(f.path, "n1 " ED "\n", false);
    assert_int_equal(look_up(&f, "n1").verdict, KNOWN_MATCH);
    place_write(f.path, "@revoked * " ED "\n", true);
    assert_int_equal(look_up(&f, "n1").verdict, KNOWN_REVOKED);

    /* Another file in its place, of the same size, as ssh-keygen -R makes it. */
    char *AUTO_FREE other = place_path(f.folder, "other");
    place_write(other, "n2 " ED "\n#evoked * " ED "\n", false);
    assert_int_equal(rename(other, f.path), 0);
    assert_int_equal(look_up(&f, "n1").verdict, KNOWN_UNKNOWN);
    assert_int_equal(look_up(&f, "n2").verdict, KNOWN_MATCH);

    place_write(f.path, "# shorter, and without an end", false);
    assert_int_equal(look_up(&f, "n2").verdict, KNOWN_UNKNOWN);
    place_write(f.path, "\nn2 " ED, true); /* without an end too */
    assert_int_equal(look_up(&f, "n2").line, 2);
    place_write(f.path, "\nn3 " ED "\n", true);
    assert_int_equal(look_up(&f, "n2").line, 2);
    assert_int_equal(look_up(&f, "n3").line, 3);
    assert_int_equal(unlink(f.path), 0);
    assert_int_equal(look_up(&f, "n3").verdict, KNOWN_UNKNOWN);
    finish(&f);
}

static void refuses_a_file_that_is_too_large(void **state)
{
    (void)state;
    struct files f;
    begin(&f);
    place_write(f.path, "n1 " ED "\n", false);
    assert_int_equal(look_up(&f, "n1").verdict, KNOWN_MATCH);
    assert_int_equal(truncate(f.path, 64 << 20), 0);
    struct known_hosts *known = known_hosts_create("n1", 22);
    struct error err = ERROR_INIT;
    assert_int_equal(known_files_find(f.known_files, f.list, known, &err), -1);
    assert_non_null(strstr(err.text, "too large"));
    known_hosts_destroy(known);
    finish(&f);
}

/* Many hosts and kinds of lines: each is found at its line. */
static void finds_each_of_many_hosts(void **state)
{
    (void)state;
    enum { HOSTS = 500 };
    struct files f;
    begin(&f);
    for (int i = 0; i < HOSTS; i++) {
        char *AUTO_FREE name = mem_printf("node%d", i);
        char *AUTO_FREE names = mem_printf("%s,NODE%d-b,%s " ED "\n", name, i, name);
        if (i % 3 == 0)
            place_write(f.path, names, true);
        else
            append(&f, name, i % 3 == 1);
        if (i % 100 == 50)
            assert_int_equal(look_up(&f, name).line, i + 1);
    }
    for (int i = HOSTS - 1; i >= 0; i--) {
        char *AUTO_FREE name = mem_printf("Node%d", i);
        char *AUTO_FREE alias = mem_printf("node%d-B", i);
        assert_int_equal(look_up(&f, name).line, i + 1);
        assert_int_equal(look_up(&f, name).line, i + 1); /* also a second time */
        assert_int_equal(look_up(&f, alias).line, i % 3 == 0 ? i + 1 : 0);
    }
    assert_int_equal(look_up(&f, "node").verdict, KNOWN_UNKNOWN);
    finish(&f);
}

/* Of some length around 255, as DNS has it, also when it stands in [ ] with a port. */
static char *long_name_new(unsigned n)
{
    static const int lengths[] = {248, 249, 255, 256};
    return mem_printf("%0*d", lengths[n % 4], 1);
}

/* A line of one name, as we append it, and with a mark. */
static void put_own_line(struct buf *text, unsigned n, struct byte_view key)
{
    static const char *const marks[] = {"", "@revoked ", "@cert-authority "};
    unsigned char salt[20] = {(unsigned char)n, (unsigned char)(n >> 8)};
    char *AUTO_FREE name = n % 2 == 0 ? mem_printf("a%u", n / 16 % 7) : long_name_new(n / 16);
    struct known_hosts *known = known_hosts_create(name, n / 2 % 2 == 0 ? 22 : 2222);

    buf_puts(text, marks[n / 4 % 3]);
    assert_int_equal(known_hosts_line(known, key, n % 5 == 0 ? NULL : salt, text), 0);
    known_hosts_destroy(known);
}

/* One more line of any kind; `n` chooses it. */
static void put_some_line(struct buf *text, unsigned n, struct byte_view key)
{
    static const char *const kinds[] = {"a%u,b%u " ED "\n",
                                        "A%u,*.b%u " ED "\n",
                                        "!a%u,?%u " ED "\n",
                                        "@revoked x%u,a%u " ED "\n",
                                        "[a%u]:2222,a%u " ED "\r\n",
                                        "# a%u,%u " ED "\n",
                                        ",,a%u,,b%u, " ED "\n",
                                        "  a%u,b%u\t" ED " a comment\n",
                                        "a%u,b%u ssh-rsa " ED_BASE64 "\n",
                                        "|1|a%u,%u " ED "\n",
                                        "@cert-authority *%u,b%u " ED "\n",
                                        "\n# %u %u\n"};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    unsigned kind = n % (KINDS + 7), a = n / 16 % 7, b = n / 128 % 7;

    if (kind < KINDS) {
        buf_printf(text, kinds[kind], a, b);
    } else if (kind == KINDS) {
        for (unsigned i = 0; i < 70; i++)
            buf_printf(text, "c%u,", i);
        buf_printf(text, "b%u " ED "\n", b);
    } else {
        put_own_line(text, n / (KINDS + 7), key);
    }
}

static void read_all_lines(struct known_hosts *known, const struct buf *text)
{
    struct byte_view left = buf_view(text), line;
    for (int number = 1; known_hosts_next_line(&left, &line); number++)
        known_hosts_read_line(known, "file", number, line);
}

static void check_same_answer(const struct known_hosts *found, const struct known_hosts *all,
                              struct byte_view key)
{
    struct known_answer a = known_hosts_check(found, key), b = known_hosts_check(all, key);

    assert_int_equal(a.verdict, b.verdict);
    assert_int_equal(a.line, b.line);
}

static void check_host(struct files *f, const struct buf *text, const char *name, int port)
{
    struct known_hosts *found = known_hosts_create(name, port);
    struct known_hosts *all = known_hosts_create(name, port);
    struct error err = ERROR_INIT;

    assert_int_equal(known_files_find(f->known_files, f->list, found, &err), 0);
    read_all_lines(all, text);
    check_same_answer(found, all, f->key);
    check_same_answer(found, all, (struct byte_view){f->key.at, f->key.length - 1});
    known_hosts_destroy(found);
    known_hosts_destroy(all);
}

/* A search by name finds the same lines as one that reads all of them, for each host. */
static void finds_what_a_search_of_all_lines_finds(void **state)
{
    (void)state;
    enum { ROUNDS = 40, LINES = 30 };
    static const char *const names[] = {"a0", "A1",  "a2", "a3",   "b0",    "b1.b2",
                                        "b4", "c69", "x1", "z.b3", "|1|a1", "other"};
    unsigned n = 12345;
    for (int round = 0; round < ROUNDS; round++) {
        AUTO_BUF struct buf text = BUF_INIT(1 << 20);
        struct files f;
        begin(&f);
        for (int i = 0; i < LINES; i++) {
            size_t before = text.length;
            n = n * 1103515245 + 12345;
            put_some_line(&text, n >> 8, f.key);
            place_write(f.path, buf_text(&text) + before, true);
            for (size_t j = i % 3; j < sizeof names / sizeof names[0]; j += 3)
                check_host(&f, &text, names[j], j % 2 == 0 ? 22 : 2222);
            for (unsigned j = i % 3; j < 8; j += 3) {
                char *AUTO_FREE name = long_name_new(j);
                check_host(&f, &text, name, j < 4 ? 22 : 2222);
            }
        }
        finish(&f);
    }
}

/* Each as it is and with another port, readable and hashed. */
static void long_names_are_found(void **state)
{
    (void)state;
    struct files f;
    begin(&f);
    for (unsigned i = 0; i < 16; i++) {
        char *AUTO_FREE name = long_name_new(i);
        int port = i / 4 % 2 == 0 ? 22 : 2222;
        struct known_hosts *known = known_hosts_create(name, port);
        struct error err = ERROR_INIT;
        place_write(f.path, "", false);
        assert_int_equal(known_files_find(f.known_files, f.list, known, &err), 0);
        assert_int_equal(
            known_files_append(f.known_files, f.path, known, f.key, i / 8 % 2 == 1, &err), 0);
        assert_int_equal(known_files_find(f.known_files, f.list, known, &err), 0);
        assert_int_equal(known_hosts_check(known, f.key).line, 1);
        known_hosts_destroy(known);
    }
    finish(&f);
}

static void a_revoked_key_of_a_long_name_stays_revoked(void **state)
{
    (void)state;
    struct files f;
    begin(&f);
    for (unsigned i = 0; i < 8; i++) {
        char *AUTO_FREE name = long_name_new(i);
        struct known_hosts *known = known_hosts_create(name, i < 4 ? 22 : 2222);
        AUTO_BUF struct buf text = BUF_INIT(65536);
        struct error err = ERROR_INIT;
        buf_puts(&text, "@revoked ");
        assert_int_equal(
            known_hosts_line(known, f.key, (const unsigned char *)"01234567890123456789", &text),
            0);
        place_write(f.path, buf_text(&text), false);
        assert_int_equal(known_files_find(f.known_files, f.list, known, &err), 0);
        assert_int_equal(known_hosts_check(known, f.key).verdict, KNOWN_REVOKED);
        known_hosts_destroy(known);
    }
    finish(&f);
}

static void appends_and_leaves_the_rest_alone(void **state)
{
    (void)state;
    char *folder = place_make();
    char *AUTO_FREE inner = mem_printf("%s/.ssh", folder);
    char *AUTO_FREE file = mem_printf("%s/known_hosts", inner);
    struct files f;
    begin(&f);
    struct byte_view key = f.key;
    struct known_hosts *known = known_hosts_create("node1", 22);
    struct known_hosts *second = known_hosts_create("node2", 22);
    struct error err = ERROR_INIT;
    struct stat status;
    AUTO_BUF struct buf text = BUF_INIT(65536);

    assert_int_equal(known_files_append(f.known_files, file, known, key, false, &err), 0);
    assert_int_equal(stat(inner, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(fd_write_all(fd, "# no end", 8), 0);
    fd_close(&fd);
    assert_int_equal(known_files_append(f.known_files, file, second, key, false, &err), 0);
    assert_int_equal(fd_read_file(file, &text, &err), 0);
    assert_string_equal(buf_text(&text), "node1 " ED "\n# no end\nnode2 " ED "\n");

    char *files[] = {file, (char *)"/nonexistent/known_hosts", folder, NULL};
    assert_int_equal(known_files_find(f.known_files, files, second, &err), 0);
    assert_int_equal(known_hosts_check(second, key).line, 3);
    assert_int_equal(known_hosts_check(known, key).verdict, KNOWN_UNKNOWN);
    assert_int_equal(known_files_append(f.known_files, file, known, key, true, &err), 0);
    assert_int_equal(known_files_append(f.known_files, file, known, key, true, &err), 0);
    assert_int_equal(known_files_find(f.known_files, files, known, &err), 0);
    assert_int_equal(known_hosts_check(known, key).line, 1);
    buf_clear(&text);
    assert_int_equal(fd_read_file(file, &text, &err), 0);
    const char *first = strstr(buf_text(&text), "|1|");
    assert_non_null(first);
    const char *other = strstr(first + 1, "\n|1|");
    assert_non_null(other);
    assert_memory_not_equal(first, other + 1, 30); /* each with a salt of its own */
    assert_int_equal(known_files_append(f.known_files, folder, known, key, true, &err), -1);
    assert_non_null(strstr(err.text, folder));
    known_hosts_destroy(known);
    known_hosts_destroy(second);
    place_remove(folder);
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_names_and_ports),
        cmocka_unit_test(a_file_is_read_once_for_many_hosts),
        cmocka_unit_test(a_file_that_cannot_be_read_now_is_not_an_empty_one),
        cmocka_unit_test(sees_what_others_do_to_a_file),
        cmocka_unit_test(refuses_a_file_that_is_too_large),
        cmocka_unit_test(finds_each_of_many_hosts),
        cmocka_unit_test(finds_what_a_search_of_all_lines_finds),
        cmocka_unit_test(long_names_are_found),
        cmocka_unit_test(a_revoked_key_of_a_long_name_stays_revoked),
        cmocka_unit_test(appends_and_leaves_the_rest_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
