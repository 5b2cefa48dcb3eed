/* SPDX-License-Identifier: Apache-2.0 */
#include "node/mpi_python.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "base/text.h"
#include "node/image.h"
#include "node/python_files.h"

#define ABI_MAX 32
#define WORDS_MAX 64 /* of a command line, until its Python */

static const char *get(const struct mpi_program *program, const char *name)
{
    const char *value = program->get(program->context, name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* An image has its own. */
static const char *library_path(const struct mpi_program *program)
{
    return program->root != NULL ? NULL : get(program, "LD_LIBRARY_PATH");
}

/* The Python of a program, or of the command line that it starts. The caller frees it. NULL: there
 * is none, or it is not known, as below a shell. */
static char *find_interpreter(const struct mpi_program *program, struct python_place *place)
{
    bool script;
    if (image_is_wrapper(program->path))
        return NULL;
    char *found = python_interpreter(place, &script);
    if (found != NULL || !mpi_is_starter(program->path) || program->argv[0] == NULL)
        return found;
    for (int i = 1; i < WORDS_MAX && program->argv[i] != NULL; i++) {
        const char *word = program->argv[i];
        if (image_is_wrapper(word) || (mpi_is_interpreter(word) && !python_is(word)))
            return NULL;
        char *path AUTO_FREE = python_find(place, word);
        struct python_place below = *place;
        below.path = path;
        script = false;
        found = path != NULL ? python_interpreter(&below, &script) : NULL;
        if (found != NULL || (script && !mpi_is_starter(word)))
            return found;
    }
    return NULL;
}

/* The files of mpi4py */

/* "mpich" of ".../MPI.mpich.cpython-312-x86_64-linux-gnu.so", "" of one that is for one MPI only.
 */
static void abi_of(const char *file, char *out)
{
    const char *from = text_base_name(file) + strlen("MPI.");
    size_t length = strcspn(from, ".");
    bool plain = from[length] == '\0' || strncmp(from, "cpython-", 8) == 0 ||
                 strncmp(from, "pypy", 4) == 0 || strncmp(from, "abi3.", 5) == 0;
    snprintf(out, ABI_MAX, "%.*s", plain ? 0 : (int)(length < ABI_MAX ? length : 0), from);
}

/* Those of the first mpi4py that would be imported. */
static size_t first_package(const struct strv *files)
{
    size_t count = 0;
    while (count < files->count) {
        const char *one = files->items[0], *other = files->items[count];
        size_t folder = (size_t)(text_base_name(one) - one);
        if (strlen(other) < folder || strncmp(one, other, folder) != 0 ||
            strncmp(text_base_name(other), "MPI.", 4) != 0)
            break;
        count++;
    }
    return count;
}

static const char *file_for(const struct strv *files, size_t count, const char *abi)
{
    for (size_t i = 0; i < count; i++) {
        char own[ABI_MAX];
        abi_of(files->items[i], own);
        if (strcmp(own, abi) == 0)
            return files->items[i];
    }
    return NULL;
}

/* The MPI library that mpi4py would load */

struct loader {
    const struct mpi_program *program;
    struct library_search *search;
    enum mpi_kind kind; /* of the library that was found */
};

/* What mpi4py calls the MPI of a library; NULL: it cannot be read. The dynamic linker looks for a
 * path without a slash. */
static const char *abi_at(struct loader *loader, const char *path)
{
    struct elf_info info;
    const char *root = loader->program->root;
    char *real AUTO_FREE = strchr(path, '/') != NULL ? image_real(root, path) : NULL;
    if (library_search_open(loader->search, path, &info) < 0)
        return NULL;
    const char *name = text_base_name(real != NULL ? real : path);
    bool openmpi = false, standard = strncmp(name, "libmpi_abi.", strlen("libmpi_abi.")) == 0;
    loader->kind = standard ? MPI_NONE : mpi_detect_library(name, &info, &openmpi);
    elf_info_destroy(&info);
    return standard ? "mpiabi" : openmpi ? "openmpi" : "mpich";
}

/* A folder, a file, or nothing: then the dynamic linker looks. */
static const char *abi_in(struct loader *loader, const char *entry)
{
    static const char *const names[] = {"libmpi.so", "libmpi.so.12", "libmpi.so.40"};
    struct stat info;
    const char *abi = NULL;
    char *real AUTO_FREE = image_real(loader->program->root, entry);
    bool folder =
        entry[0] == '\0' || (real != NULL && stat(real, &info) == 0 && S_ISDIR(info.st_mode));
    if (!folder)
        return abi_at(loader, entry);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && abi == NULL; i++) {
        char *path AUTO_FREE = mem_printf("%s%s%s", entry, entry[0] == '\0' ? "" : "/", names[i]);
        abi = abi_at(loader, path);
    }
    return abi;
}

static const char *loaded_abi(const struct mpi_program *program, const struct python_place *place,
                              const char *interpreter, enum mpi_kind *kind)
{
    AUTO_STRV struct strv entries = STRV_INIT;
    struct elf_info info = {.wide = false};
    const char *list = get(program, "MPI4PY_LIBMPI"), *abi = NULL;
    char *real AUTO_FREE = image_real(program->root, interpreter);
    int fd AUTO_FD = real == NULL ? -1 : fd_open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0 || library_read_elf(fd, &info) < 0)
        return NULL;
    struct loader loader = {.program = program, .kind = MPI_NONE};
    loader.search = library_search_create(program->root, interpreter, &info, library_path(program));
    for (const char *at = list; at != NULL;) {
        size_t length = strcspn(at, ":");
        strv_add_n(&entries, at, length);
        at = at[length] == ':' ? at + length + 1 : NULL;
    }
    if (list == NULL) {
        python_libraries(place, interpreter, &entries);
        strv_add(&entries, "");
    }
    for (size_t i = 0; i < entries.count && abi == NULL; i++)
        abi = abi_in(&loader, entries.items[i]);
    *kind = loader.kind;
    library_search_destroy(loader.search);
    elf_info_destroy(&info);
    return abi;
}

/* MPI4PY_MPIABI without its blanks, "-" and "_", in small letters. Intel MPI is MPICH there. */
static void named_abi(const char *value, char *out)
{
    size_t length = 0;
    for (; *value != '\0' && length + 1 < ABI_MAX; value++) {
        if (strchr(" -_", *value) == NULL)
            out[length++] = (char)tolower((unsigned char)*value);
    }
    out[length] = '\0';
    if (strcmp(out, "impi") == 0)
        snprintf(out, ABI_MAX, "mpich");
}

static enum mpi_kind kind_of_abi(const char *abi)
{
    return strcmp(abi, "openmpi") == 0 ? MPI_PMIX : strcmp(abi, "mpich") == 0 ? MPI_PMI1 : MPI_NONE;
}

static bool take_linked(const struct mpi_program *program, const char *file,
                        struct mpi_finding *out)
{
    struct mpi_finding found;
    const char *there = file + (program->root != NULL ? strlen(program->root) : 0);
    if (mpi_detect_in(program->root, there, library_path(program), &found, NULL) < 0 ||
        !found.linked)
        return false;
    out->kind = found.kind;
    snprintf(out->what, sizeof(out->what), "may import %.200s, which %.200s", file, found.what);
    return true;
}

/* What cannot be read now is left out: the program may never import its mpi4py. */
static void look_at_mpi4py(const struct mpi_program *program, struct mpi_finding *out)
{
    struct python_place place = {.root = program->root,
                                 .path = program->path,
                                 .wdir = program->wdir,
                                 .search = get(program, "PATH"),
                                 .home = get(program, "HOME"),
                                 .python_path = get(program, "PYTHONPATH"),
                                 .user_base = get(program, "PYTHONUSERBASE"),
                                 .no_user_site = get(program, "PYTHONNOUSERSITE")};
    AUTO_STRV struct strv files = STRV_INIT;
    char *interpreter AUTO_FREE = find_interpreter(program, &place), named[ABI_MAX] = "";
    if (interpreter == NULL)
        return;
    python_files(&place, interpreter, "mpi4py/MPI.*so", &files);
    size_t count = first_package(&files);
    const char *file = file_for(&files, count, "");
    if (count == 0 || (file != NULL && take_linked(program, file, out)))
        return;
    const char *wanted = get(program, "MPI4PY_MPIABI"), *abi = named;
    enum mpi_kind kind = MPI_NONE;
    if (wanted != NULL) {
        named_abi(wanted, named);
        kind = kind_of_abi(named);
    } else
        abi = loaded_abi(program, &place, interpreter, &kind);
    if (file == NULL && abi != NULL) {
        file = file_for(&files, count, abi);
        if (file != NULL && take_linked(program, file, out))
            return;
    }
    if (file == NULL || kind == MPI_NONE)
        return;
    out->kind = kind;
    snprintf(out->what, sizeof(out->what), "may import %.200s with %.32s", file, abi);
}

static int detect(const struct mpi_program *program, struct mpi_finding *out, struct error *err)
{
    if (mpi_detect_in(program->root, program->path, library_path(program), out, err) < 0)
        return -1;
    if (out->kind == MPI_PMIX && !out->linked)
        look_at_mpi4py(program, out);
    return 0;
}

static const char *no_variable(const void *context, const char *name)
{
    (void)context, (void)name;
    return NULL;
}

/* A command that the image does not have is most likely mounted there, under the same path. */
static int look_into_image(const struct mpi_program *program, const struct image_command *command,
                           struct mpi_finding *out, struct error *err)
{
    struct mpi_finding found;
    char *path AUTO_FREE = image_find(command->root, command->argv[0]);
    const char *root = path != NULL ? command->root : NULL;
    if (path == NULL && command->argv[0][0] == '/')
        path = mem_strdup(command->argv[0]);
    const struct mpi_program inside = {.root = root,
                                       .path = path,
                                       .argv = command->argv,
                                       .wdir = program->wdir,
                                       .get = command->inherits ? program->get : no_variable,
                                       .context = program->context};
    if (path == NULL)
        return 0;
    if (detect(&inside, &found, err) < 0)
        return -1;
    if (found.kind == MPI_NONE && !found.launcher)
        return 0;
    *out = found;
    snprintf(out->what, sizeof(out->what), "runs %.150s in %.150s, which %.150s", path,
             command->root, found.what);
    return 0;
}

int mpi_detect_program(const struct mpi_program *program, struct mpi_finding *out,
                       struct error *err)
{
    struct image_command command;
    if (detect(program, out, err) < 0)
        return -1;
    if (!image_command_of(program->path, program->argv, program->wdir, program->get,
                          program->context, &command))
        return 0;
    int result = look_into_image(program, &command, out, err);
    free(command.root);
    return result;
}
