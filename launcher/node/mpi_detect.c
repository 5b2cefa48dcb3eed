/* SPDX-License-Identifier: Apache-2.0 */
#include "node/mpi_detect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/elf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/proc.h"
#include "model/settings/mpi_names.h"
#include "node/image.h"
#include "node/room_test.h"

#define LIBRARIES_MAX 192

static const char *family_of(const char *name, enum mpi_kind kind)
{
    if (text_begins(name, "libpmi"))
        return text_begins(name, "libpmix") ? "PMIx" : "PMI";
    return kind == MPI_PMIX ? "Open MPI" : "MPICH or a derivative";
}

static bool is_named(const char *path, const char *const *names)
{
    const char *name = text_base_name(path);
    for (; *names != NULL; names++) {
        size_t length = strlen(*names);
        if ((*names)[length - 1] == '*' ? strncmp(name, *names, length - 1) == 0
                                        : strcmp(name, *names) == 0)
            return true;
    }
    return false;
}

bool mpi_is_starter(const char *path)
{
    static const char *const names[] = {
        "env",   "nice",   "numactl",   "taskset", "timeout", "stdbuf",   "time",
        "nohup", "setsid", "chrt",      "ionice",  "prlimit", "unshare",  "sudo",
        "gdb*",  "lldb*",  "cuda-gdb",  "strace",  "ltrace",  "valgrind", "perf",
        "nsys",  "ncu",    "catchsegv", "rr",      "xterm",   NULL};
    return is_named(path, names);
}

bool mpi_is_interpreter(const char *path)
{
    static const char *const names[] = {
        "python*", "pypy*",  "ipython*", "sh",     "bash",  "dash",    "zsh",     "ksh*", "csh",
        "tcsh",    "fish",   "busybox",  "perl*",  "ruby*", "julia*",  "Rscript", "R",    "java",
        "node",    "nodejs", "lua*",     "tclsh*", "php*",  "octave*", "matlab*", NULL};
    return is_named(path, names);
}

/* Programs that start MPI programs with a server of their own; "mpirun.openmpi" counts too. */
static bool is_launcher(const char *path)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun",    "prterun", "prun",
                                        "prte",   "hvdrun",  "horovodrun", "srun"};
    const char *name = text_base_name(path);
    size_t length = strcspn(name, ".");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == length && strncmp(name, names[i], length) == 0)
            return true;
    }
    return false;
}

static void say(struct mpi_finding *out, enum mpi_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct mpi_finding *out, enum mpi_kind kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    out->kind = kind;
    out->linked = out->launcher = false;
    vsnprintf(out->what, sizeof(out->what), format, args);
    va_end(args);
}

static void say_needs(struct mpi_finding *out, const char *name, const char *through)
{
    enum mpi_kind kind = mpi_names_kind(name);
    const char *family = family_of(name, kind);
    if (through == NULL)
        say(out, kind, "needs %.80s (%s)", name, family);
    else
        say(out, kind, "needs %.80s (%s) through %.80s", name, family, through);
    out->linked = true;
}

/* The first library that shows the kind; the companions of libmpi.so.12 show Open MPI 1. */
static const char *telling(const struct strv *needed)
{
    const char *found = NULL;
    for (size_t i = 0; i < needed->count; i++) {
        enum mpi_kind kind = mpi_names_kind(needed->items[i]);
        bool better = found == NULL || (text_begins(found, "libmpi.so") && kind == MPI_PMIX);
        if (kind != MPI_NONE && better)
            found = needed->items[i];
    }
    return found;
}

/* Libraries of the C and C++ run time never lead to an MPI. */
static bool is_plain(const char *name)
{
    static const char *const plain[] = {
        "libc.so", "libm.so",     "libpthread.so", "libdl.so",     "librt.so",   "ld-linux",
        "ld64.so", "libgcc_s.so", "ld-musl",       "libstdc++.so", "libutil.so", "libresolv.so"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (text_begins(name, plain[i]))
            return true;
    }
    return false;
}

struct walk {
    struct strv names;   /* libraries to look at, in order; the index is the search's queue */
    struct strv through; /* by index: the library of the program that leads there */
    struct library_search *search;
};

static void enqueue(struct walk *walk, const struct strv *needed, const char *through)
{
    for (size_t i = 0; i < needed->count && walk->names.count < LIBRARIES_MAX; i++) {
        const char *name = needed->items[i];
        if (strv_has(&walk->names, name) || is_plain(name))
            continue;
        strv_add(&walk->names, name);
        strv_add(&walk->through, through != NULL ? through : name);
    }
}

/* A program or library, and what the linker would look with for its libraries. */
struct object {
    const char *root, *path;
    const struct elf_info *info;
    const char *library_path;
};

static struct library_search *search_of(const struct object *object)
{
    return library_search_create(object->root, object->path, object->info, object->library_path);
}

/* A libmpi.so.12 is MPICH's, unless it needs Open MPI's other libraries; and an MPICH that was
 * built for PMIx (Ubuntu 24.04) needs that library and knows no PMI-1. */
static int settle_ambiguous(const struct object *object, const char *name, struct mpi_finding *out)
{
    if (mpi_names_kind(name) != MPI_PMI1 || text_begins(name, "libpmi"))
        return 0;
    struct library_search *search = search_of(object);
    struct elf_info library;
    if (library_search_open(search, name, &library) == 0) {
        const char *found = telling(&library.needed);
        if (found != NULL && mpi_names_kind(found) == MPI_PMIX)
            say_needs(out, found, name);
        elf_info_destroy(&library);
    }
    int trouble = library_search_trouble(search);
    library_search_destroy(search);
    return trouble;
}

/* Libraries of the libraries, breadth first, until one tells. */
static int walk_libraries(const struct object *object, struct mpi_finding *out)
{
    int trouble = 0;
    struct walk walk = {.names = STRV_INIT, .through = STRV_INIT};
    walk.search = search_of(object);
    enqueue(&walk, &object->info->needed, NULL);
    for (size_t i = 0; i < walk.names.count && out->kind == MPI_NONE; i++) {
        struct elf_info library;
        if (library_search_open(walk.search, walk.names.items[i], &library) < 0)
            continue;
        const char *found = telling(&library.needed);
        if (found != NULL) {
            say_needs(out, found, walk.through.items[i]);
            trouble = settle_ambiguous(object, found, out);
        } else
            enqueue(&walk, &library.needed, walk.through.items[i]);
        elf_info_destroy(&library);
    }
    if (trouble == 0)
        trouble = library_search_trouble(walk.search);
    library_search_destroy(walk.search);
    strv_destroy(&walk.names);
    strv_destroy(&walk.through);
    return trouble;
}

static int look_at_elf(const struct object *object, struct mpi_finding *out)
{
    if (!object->info->dynamic) {
        say(out, MPI_NONE, "is statically linked");
        return 0;
    }
    say(out, MPI_NONE, "needs no MPI library");
    const char *found = telling(&object->info->needed);
    if (found == NULL)
        return walk_libraries(object, out);
    say_needs(out, found, NULL);
    return settle_ambiguous(object, found, out);
}

/* errno of what kept us from looking, else 0. */
static int look_at(const char *root, const char *path, const char *library_path,
                   struct mpi_finding *out)
{
    say(out, MPI_NONE, "cannot be read");
    char *real AUTO_FREE = root != NULL ? image_real(root, path) : mem_strdup(path);
    int fd AUTO_FD = real != NULL ? fd_open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0) : -1;
    char magic[2];
    ssize_t got = fd < 0 ? -1 : fd_pread(fd, magic, 2, 0);
    if (got != 2)
        return got < 0 && library_is_trouble(errno) ? errno : 0;
    if (is_launcher(path)) {
        say(out, MPI_NONE, "is a launcher (%.80s), which serves its own workers",
            text_base_name(path));
        out->launcher = true;
        return 0;
    }
    if (magic[0] == '#' && magic[1] == '!') {
        say(out, MPI_PMIX, "is a script");
        return 0;
    }
    if (mpi_is_interpreter(path) || mpi_is_starter(path) || image_is_wrapper(path)) {
        say(out, MPI_PMIX, "is an interpreter or runs other programs (%.80s)",
            text_base_name(path));
        return 0;
    }
    struct elf_info info;
    if (library_read_elf(fd, &info) < 0) {
        say(out, MPI_NONE, "is neither a script nor an ELF program");
        return library_is_trouble(errno) ? errno : 0;
    }
    const struct object object = {root, path, &info, library_path};
    int trouble = look_at_elf(&object, out);
    elf_info_destroy(&info);
    return trouble;
}

int mpi_detect_in(const char *root, const char *path, const char *library_path,
                  struct mpi_finding *out, struct error *err)
{
    int trouble = look_at(root, path, library_path, out);
    if (trouble == 0)
        return 0;
    return error_errno(
        err, trouble, "cannot find out which MPI %s or its libraries need (--mpi= names it)", path);
}

/* Open MPI's library needs its companions, and an MPICH for PMIx needs libpmix only. Without a
 * version in the name, only these tell. */
enum mpi_kind mpi_detect_library(const char *name, const struct elf_info *info, bool *openmpi)
{
    const char *found = telling(&info->needed);
    bool named = mpi_names_version(name) >= 0 && mpi_names_kind(name) == MPI_PMIX;
    bool pmix = found != NULL && mpi_names_kind(found) == MPI_PMIX;
    *openmpi = named;
    for (size_t i = 0; i < info->needed.count && !*openmpi; i++)
        *openmpi = text_begins(info->needed.items[i], "libopen-");
    return named || pmix ? MPI_PMIX : MPI_PMI1;
}

/* Open MPI's launchers have these too, and PMI libraries belong to servers as well. */
static bool is_companion(const char *name)
{
    return text_begins(name, "libpmi") || text_begins(name, "libopen-");
}

void mpi_detect_process(pid_t pid, struct mpi_finding *out)
{
    say(out, MPI_NONE, "has no MPI library mapped");
    struct buf text AUTO_BUF = BUF_INIT(4 << 20);
    (void)proc_read(pid, 0, "maps", &text); /* what was read counts, even if the limit cut it */
    for (const char *at = buf_text(&text); *at != '\0'; at = text_behind(at, '\n')) {
        size_t length = strcspn(at, "\n");
        char line[512];
        snprintf(line, sizeof(line), "%.*s", (int)(length < 511 ? length : 511), at);
        const char *path = strchr(line, '/') != NULL ? strchr(line, '/') : "";
        const char *name = text_base_name(path);
        enum mpi_kind kind = mpi_names_kind(name);
        if (kind != MPI_NONE && !is_companion(name)) {
            say(out, kind, "has %.300s mapped (%s)", path, family_of(name, kind));
            return;
        }
    }
}

/* Whether another launcher has started a process, as mpirun inside a worker starts its ranks. */

static bool is_other_server(const char *pair, enum mpi_kind given, const char *nspace)
{
    static const char space[] = "PMIX_NAMESPACE=";
    static const char *const pmi1[] = {"PMI_FD=", "PMI_PORT=", "PMI_RANK=", "PMI_SIZE=", "PMI_ID="};
    if (text_begins(pair, space))
        return given != MPI_PMIX || strcmp(pair + sizeof(space) - 1, nspace) != 0;
    for (size_t i = 0; given != MPI_PMI1 && i < sizeof(pmi1) / sizeof(pmi1[0]); i++) {
        if (text_begins(pair, pmi1[i]))
            return true;
    }
    return false;
}

bool mpi_launched_by_other(const char *environment, size_t length, enum mpi_kind given,
                           const char *nspace)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(environment + at, '\0', length - at);
        if (end == NULL)
            return false;
        if (is_other_server(environment + at, given, nspace))
            return true;
        at = (size_t)(end - environment) + 1;
    }
    return false;
}

bool mpi_process_launched_by_other(pid_t pid, enum mpi_kind given, const char *nspace)
{
    struct buf text AUTO_BUF = BUF_INIT(4 << 20);
    (void)proc_read(pid, 0, "environ", &text);
    return mpi_launched_by_other(buf_text(&text), text.length, given, nspace);
}
