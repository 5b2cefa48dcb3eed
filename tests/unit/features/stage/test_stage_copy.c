/* SPDX-License-Identifier: Apache-2.0 */
/* A source and its copy on one machine: chunks in order and out of it, and what another one has. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/tree.h"
#include "features/stage/copy.h"
#include "features/stage/source.h"
#include "features/stage/stage.h"

struct place {
    char folder[64];
    char *src, *file, *disk;
    struct stage_watch watch;
    struct stage_copy_config config;
    uint8_t chunk[STAGE_CHUNK];
};

/* The kernel refuses one call that takes space: the `left`-th of this name. */
static struct {
    const char *call; /* NULL: none */
    int code, left;
} refused;

static bool is_refused(const char *call)
{
    if (refused.call == NULL || strcmp(call, refused.call) != 0 || --refused.left != 0)
        return false;
    errno = refused.code;
    return true;
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if ((flags & O_CREAT) != 0 && is_refused("open"))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    return is_refused("write") ? -1 : syscall(SYS_write, fd, bytes, length);
}

int mkdir(const char *path, mode_t mode)
{
    return is_refused("mkdir") ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int symlink(const char *target, const char *path)
{
    return is_refused("symlink") ? -1 : (int)syscall(SYS_symlinkat, target, AT_FDCWD, path);
}

int rename(const char *from, const char *to)
{
    return is_refused("rename") ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int open_place(void **state)
{
    struct place *p = mem_alloc(sizeof(*p));
    snprintf(p->folder, sizeof(p->folder), "/tmp/hvdrun-unit-stage-XXXXXX");
    if (mkdtemp(p->folder) == NULL)
        return -1;
    p->src = mem_printf("%s/src", p->folder);
    p->file = mem_printf("%s/src/x", p->folder);
    p->disk = mem_printf("%s/disk", p->folder);
    p->config = (struct stage_copy_config){
        .place = p->disk, .keep = {(uint64_t)1 << 40, 1000000}, .watch = &p->watch};
    *state = p;
    return mkdir(p->src, 0700);
}

static int close_place(void **state)
{
    struct place *p = *state;
    (void)!tree_remove(AT_FDCWD, p->folder, NULL);
    int result = access(p->folder, F_OK) < 0 ? 0 : -1;
    free(p->src);
    free(p->file);
    free(p->disk);
    free(p);
    return result;
}

/* Its bytes differ in each chunk. */
static void fill(const char *path, size_t length, char seed)
{
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char *bytes AUTO_FREE = mem_alloc(length);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(seed + (char)(i / 1000));
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, length), 0);
}

static void scan(struct place *p, struct stage_source *source)
{
    struct error err = ERROR_INIT;
    if (stage_source_open(source, p->src, &p->watch, &err) < 0 ||
        stage_source_scan(source, &err) < 0)
        fail_msg("%s", err.text);
}

static void list_of(const struct stage_source *source, struct stage_list *list)
{
    char *text = mem_dup(source->list.text, source->list.length + 1);
    assert_int_equal(stage_list_read(text, source->list.length, list, NULL), 0);
}

static void begin(struct place *p, const struct stage_source *source, struct stage_copy *copy)
{
    struct error err = ERROR_INIT;
    struct stage_list list;
    list_of(source, &list);
    if (stage_copy_begin(copy, &p->config, &list, &err) < 0)
        fail_msg("%s", err.text);
}

static int send(struct place *p, struct stage_source *source, struct stage_copy *copy,
                uint64_t chunk, struct error *err)
{
    assert_int_equal(stage_source_read(source, chunk, p->chunk, err), 0);
    return stage_copy_write(copy, chunk, p->chunk, stage_chunk_size(source->list.stream, chunk),
                            err);
}

/* How many chunks it lacked. */
static int complete(struct place *p, struct stage_source *source, struct stage_copy *copy)
{
    struct error err = ERROR_INIT;
    int sent = 0;
    for (uint64_t chunk = 0; chunk < stage_list_chunks(&source->list); chunk++) {
        if (!stage_copy_lacks(copy, chunk))
            continue;
        assert_int_equal(send(p, source, copy, chunk, &err), 0);
        sent++;
    }
    if (stage_copy_end(copy, &err) < 0)
        fail_msg("%s", err.text);
    return sent;
}

static void test_whole(void **state)
{
    struct place *p = *state;
    struct stage_source source;
    struct stage_copy copy, again;
    struct buf in AUTO_BUF = BUF_INIT(4 * STAGE_CHUNK), out AUTO_BUF = BUF_INIT(4 * STAGE_CHUNK);
    fill(p->file, 3 * STAGE_CHUNK - 5, 'a');
    scan(p, &source);
    begin(p, &source, &copy);
    assert_int_equal(copy.missing, 3 * STAGE_CHUNK - 5);
    assert_int_equal(complete(p, &source, &copy), 3);
    char *root AUTO_FREE = stage_copy_place(&copy);
    char *path AUTO_FREE = mem_printf("%s/x", root);
    assert_int_equal(fd_read_file(p->file, &in, NULL), 0);
    assert_int_equal(fd_read_file(path, &out, NULL), 0);
    assert_int_equal(in.length, out.length);
    assert_memory_equal(buf_text(&in), buf_text(&out), in.length);
    begin(p, &source, &again);
    assert_true(again.complete && again.folder == NULL);
    assert_int_equal(complete(p, &source, &again), 0);
    stage_copy_close(&copy);
    stage_copy_close(&again);
    stage_source_close(&source);
}

/* Two that are built at the same time: the second to end takes the first. */
static void test_race(void **state)
{
    struct place *p = *state;
    struct stage_source source;
    struct stage_copy one, other;
    fill(p->file, 1000, 'a');
    scan(p, &source);
    begin(p, &source, &one);
    begin(p, &source, &other);
    assert_int_equal(complete(p, &source, &other), 1);
    assert_int_equal(complete(p, &source, &one), 1);
    char *first AUTO_FREE = stage_copy_place(&one), *second AUTO_FREE = stage_copy_place(&other);
    assert_string_equal(first, second);
    p->config.keep.bytes = 0;
    one.config.keep.bytes = 0;
    stage_copy_close(&one); /* the other one still uses it */
    assert_int_equal(access(second, F_OK), 0);
    stage_copy_close(&other);
    stage_source_close(&source);
}

static void test_order(void **state)
{
    struct place *p = *state;
    struct stage_source source;
    struct stage_copy copy;
    struct error err = ERROR_INIT;
    fill(p->file, 2 * STAGE_CHUNK, 'a');
    scan(p, &source);
    begin(p, &source, &copy);
    assert_int_equal(send(p, &source, &copy, 1, &err), -1);
    assert_string_equal(err.text, "the chunks of src/x are not in order");
    assert_null(copy.folder); /* what was built is gone */
    stage_source_close(&source);
}

static void test_bytes_that_changed(void **state)
{
    struct place *p = *state;
    struct stage_source source;
    struct stage_copy copy;
    struct error err = ERROR_INIT;
    fill(p->file, 100, 'a');
    scan(p, &source);
    begin(p, &source, &copy);
    memset(p->chunk, 'z', 100);
    assert_int_equal(stage_copy_write(&copy, 0, p->chunk, 100, &err), -1);
    assert_string_equal(err.text, "src/x changed while it was staged: stage what nobody writes to");
    fill(p->file, 101, 'a');
    assert_int_equal(stage_source_read(&source, 0, p->chunk, &err), -1);
    assert_non_null(strstr(err.text, "src/x changed while it was staged"));
    stage_source_close(&source);
}

static void test_neighbours(void **state)
{
    struct place *p = *state;
    struct stage_source source;
    struct stage_copy copy, next;
    struct stat one, other;
    char *more AUTO_FREE = mem_printf("%s/src/y", p->folder);
    fill(p->file, 2 * STAGE_CHUNK, 'a');
    scan(p, &source);
    begin(p, &source, &copy);
    complete(p, &source, &copy);
    stage_source_close(&source);
    fill(more, 10, 'b');
    scan(p, &source);
    begin(p, &source, &next);
    assert_int_equal(next.missing, 10);
    assert_int_equal(complete(p, &source, &next), 1);
    char *first AUTO_FREE = stage_copy_place(&copy), *second AUTO_FREE = stage_copy_place(&next);
    char *in_first AUTO_FREE = mem_printf("%s/x", first);
    char *in_second AUTO_FREE = mem_printf("%s/x", second);
    assert_int_equal(stat(in_first, &one), 0);
    assert_int_equal(stat(in_second, &other), 0);
    assert_int_equal(one.st_ino, other.st_ino);
    stage_copy_close(&copy);
    stage_copy_close(&next);
    stage_source_close(&source);
}

/* The place of the copy, which is closed. */
static char *build(struct place *p, struct stage_source *source)
{
    struct stage_copy copy;
    begin(p, source, &copy);
    complete(p, source, &copy);
    char *path = stage_copy_place(&copy);
    stage_copy_close(&copy);
    return path;
}

/* Who keeps nothing removes only what nobody has kept. */
static void test_kept(void **state)
{
    struct place *p = *state;
    struct stage_source source;
    struct stage_keep keep = p->config.keep;
    fill(p->file, 100, 'a');
    scan(p, &source);
    p->config.keep.bytes = 0;
    char *path AUTO_FREE = build(p, &source);
    assert_int_equal(access(path, F_OK), -1);
    p->config.keep = keep;
    free(build(p, &source));
    p->config.keep.bytes = 0;
    free(build(p, &source));
    assert_int_equal(access(path, F_OK), 0);
    stage_source_close(&source);
}

/* What a dead process has left goes with the next use, also of a copy that is there. */
static void test_remains(void **state)
{
    struct place *p = *state;
    struct stage_source source;
    struct stage_copy building, copy;
    char *other AUTO_FREE = mem_printf("%s/src/y", p->folder);
    fill(p->file, 100, 'a');
    scan(p, &source);
    begin(p, &source, &copy);
    complete(p, &source, &copy);
    char *dead AUTO_FREE = mem_printf("%s/.new-1-1", copy.store.path);
    stage_copy_close(&copy);
    stage_source_close(&source);
    assert_int_equal(mkdir(dead, 0700), 0);
    fill(other, 10, 'b');
    scan(p, &source);
    begin(p, &source, &building);
    assert_int_equal(access(dead, F_OK), -1);
    char *alive AUTO_FREE = mem_strdup(building.folder);
    assert_int_equal(mkdir(dead, 0700), 0);
    unlink(other);
    struct stage_source first;
    scan(p, &first);
    begin(p, &first, &copy);
    assert_true(copy.complete && copy.folder == NULL);
    assert_int_equal(access(dead, F_OK), -1);
    stage_copy_close(&copy);
    stage_source_close(&first);
    assert_int_equal(access(alive, F_OK), 0);
    stage_copy_close(&building);
    stage_source_close(&source);
}

static void test_interrupted(void **state)
{
    struct place *p = *state;
    struct stage_source source;
    struct stage_copy copy;
    struct stage_list list;
    struct error err = ERROR_INIT;
    fill(p->file, 100, 'a');
    scan(p, &source);
    list_of(&source, &list);
    atomic_store(&p->watch.stop, true);
    assert_int_equal(stage_copy_begin(&copy, &p->config, &list, &err), -1);
    assert_string_equal(err.text, "--stage was interrupted");
    stage_source_close(&source);
    assert_int_equal(stage_source_open(&source, p->src, &p->watch, &err), 0);
    assert_int_equal(stage_source_scan(&source, &err), -1);
    stage_source_close(&source);
    assert_int_equal(stage_source_open(&source, "/", &p->watch, &err), -1);
    assert_string_equal(err.text, "the folder / cannot be staged");
    stage_source_close(&source);
}

/* What a quota refuses reads like a full disk. */
static void test_no_space(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_int_equal(stage_store_fails(EDQUOT, "cannot write", "/disk/x", &err), -1);
    assert_string_equal(err.text, "no space for staged files (another --stage-dir?): cannot write "
                                  "/disk/x: Disk quota exceeded");
    assert_int_equal(stage_store_fails(ENOSPC, "cannot write", "/disk/x", &err), -1);
    assert_string_equal(err.text, "no space for staged files (another --stage-dir?): cannot write "
                                  "/disk/x: No space left on device");
    assert_int_equal(stage_store_fails(EROFS, "cannot create the folder", "/disk", &err), -1);
    assert_string_equal(err.text,
                        "--stage-dir: cannot create the folder /disk: Read-only file system");
}

static int attempt(struct place *p, struct stage_source *source, struct error *err)
{
    struct stage_copy copy;
    struct stage_list list;
    list_of(source, &list);
    int result = stage_copy_begin(&copy, &p->config, &list, err);
    for (uint64_t chunk = 0; result == 0 && chunk < stage_list_chunks(&source->list); chunk++)
        result = send(p, source, &copy, chunk, err);
    if (result == 0)
        result = stage_copy_end(&copy, err);
    refused.call = NULL; /* what could not be removed now would go with the next copy */
    if (result == 0)
        stage_copy_close(&copy);
    return result;
}

/* In the store, whose name has the number of the user. */
static void expect_none(const char *disk, const char *names)
{
    char *pattern AUTO_FREE = mem_printf("%s/hvdrun-stage-*/%s", disk, names);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) == 0)
        fail_msg("%s is left", found.gl_pathv[0]);
    globfree(&found);
}

/* Each call in turn that makes or fills something. Nothing is left of the copy. */
static int refuse_each(struct place *p, struct stage_source *source, const char *call, int code)
{
    char *wanted AUTO_FREE =
        mem_strdup("no space for staged files (another --stage-dir?): cannot ");
    for (int i = 1;; i++) {
        struct error err = ERROR_INIT;
        refused.code = code;
        refused.left = i;
        refused.call = call;
        int result = attempt(p, source, &err);
        expect_none(p->disk, "*");
        expect_none(p->disk, ".[!.]*");
        if (refused.left > 0) {
            assert_int_equal(result, 0);
            return i - 1;
        }
        if (strncmp(err.text, wanted, strlen(wanted)) != 0)
            fail_msg("%s %d: '%s'", call, i, err.text);
        assert_non_null(strstr(err.text, strerror(code)));
        assert_int_equal(result, -1);
    }
}

static void test_each_call_without_space(void **state)
{
    struct place *p = *state;
    struct stage_source source;
    static const struct {
        const char *call;
        int least;
    } calls[] = {{"open", 5}, {"write", 5}, {"mkdir", 5}, {"symlink", 1}, {"rename", 1}};
    char *empty AUTO_FREE = mem_printf("%s/src/empty", p->folder);
    char *folder AUTO_FREE = mem_printf("%s/src/folder", p->folder);
    char *in AUTO_FREE = mem_printf("%s/src/folder/y", p->folder);
    char *link AUTO_FREE = mem_printf("%s/src/link", p->folder);
    fill(p->file, STAGE_CHUNK + 5, 'a');
    fill(empty, 0, 'a');
    assert_int_equal(mkdir(folder, 0700), 0);
    fill(in, 5, 'b');
    assert_int_equal(symlink("folder/y", link), 0);
    p->config.keep.bytes = 0;
    scan(p, &source);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (int full = 0; full < 2; full++) {
            int code = full != 0 ? ENOSPC : EDQUOT;
            assert_in_range(refuse_each(p, &source, calls[i].call, code), calls[i].least, 100);
            (void)!tree_remove(AT_FDCWD, p->disk, NULL);
        }
    }
    stage_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_space),
        cmocka_unit_test_setup_teardown(test_each_call_without_space, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_whole, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_race, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_order, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_bytes_that_changed, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_neighbours, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_kept, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_remains, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_interrupted, open_place, close_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
