/* SPDX-License-Identifier: Apache-2.0 */
#include "node/python_files.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/child.h"
#include "node/image.h"

#define LINE_MAX_BYTES 256 /* as much of a #! line as the kernel reads */
#define CONFIG_MAX ((size_t)64 << 10)

/* The interpreter */

/* "python3.13t", but not "python_train.py". */
bool python_is(const char *path)
{
    const char *name = text_base_name(path);
    size_t length = strncmp(name, "python", 6) == 0 ? 6 : strncmp(name, "pypy", 4) == 0 ? 4 : 0;
    return length > 0 && name[length + strspn(name + length, "0123456789.t")] == '\0';
}

bool script_words(const char *path, struct strv *words)
{
    char line[LINE_MAX_BYTES];
    int fd AUTO_FD = fd_open_regular(path);
    ssize_t got = fd < 0 ? -1 : fd_read(fd, line, sizeof(line) - 1);
    line[got > 0 ? got : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    bool script = text_begins(line, "#!");
    if (script)
        strv_split(words, line + 2, " \t\r");
    return script;
}

char *python_find(const struct python_place *place, const char *command)
{
    return place->root != NULL ? image_find(place->root, command)
                               : child_find(command, place->search, place->wdir, NULL);
}

char *python_interpreter(const struct python_place *place, bool *script)
{
    AUTO_STRV struct strv words = STRV_INIT;
    *script = false;
    if (python_is(place->path))
        return mem_strdup(place->path);
    char *real AUTO_FREE = image_real(place->root, place->path);
    *script = real != NULL && script_words(real, &words);
    size_t word = words.count > 1 && strcmp(text_base_name(words.items[0]), "env") == 0 ? 1 : 0;
    if (word >= words.count || !python_is(words.items[word]))
        return NULL;
    return python_find(place, words.items[word]);
}

/* The folders */

struct search {
    const char *pattern; /* of the file, below a folder of packages */
    char *version;       /* "3.11", or "3.*" */
    struct strv *out;
};

/* "3.11" of ".../python3.11". The caller frees it. */
static char *version_of(const char *real)
{
    const char *name = real == NULL ? "" : text_base_name(real);
    const char *digits = strncmp(name, "python3.", 8) == 0 ? name + 8 : "";
    size_t length = strspn(digits, "0123456789");
    length += length > 0 && digits[length] == 't'; /* of a build without the lock */
    return length > 0 ? mem_printf("3.%.*s", (int)length, digits) : mem_strdup("3.*");
}

static void add_folder(const struct search *search, const char *folder)
{
    glob_t found;
    char *pattern AUTO_FREE = mem_printf("%s/%s", folder, search->pattern);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        strv_add(search->out, found.gl_pathv[i]);
    globfree(&found);
}

static void add_prefix(const struct search *search, const char *prefix)
{
    static const char *const libs[] = {"lib", "lib64"};
    for (size_t i = 0; i < 2; i++) {
        char *site AUTO_FREE =
            mem_printf("%s/%s/python%s/site-packages", prefix, libs[i], search->version);
        add_folder(search, site);
    }
    char *own AUTO_FREE = mem_printf("%s/lib/python%s/dist-packages", prefix, search->version);
    char *debian AUTO_FREE = mem_printf("%s/lib/python3/dist-packages", prefix);
    add_folder(search, own);
    add_folder(search, debian);
}

/* Relative folders begin where the program runs, which nobody knows in an image. */
static void add_python_path(const struct search *search, const struct python_place *place)
{
    const char *text = place->python_path, *root = place->root != NULL ? place->root : "";
    const char *wdir = place->wdir != NULL ? place->wdir : ".";
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ":");
        bool relative = text[0] != '/';
        char *folder AUTO_FREE =
            mem_printf("%s%s%.*s", relative ? wdir : root, relative ? "/" : "", (int)length, text);
        if (length > 0 && !(relative && place->root != NULL))
            add_folder(search, folder);
        text += length + (text[length] == ':');
    }
}

/* "/opt/venv" of "/opt/venv/bin/python3". The caller's. */
static char *prefix_of(const char *interpreter)
{
    const char *end = strrchr(interpreter, '/');
    while (end != NULL && end > interpreter && end[-1] != '/')
        end--;
    size_t length = end == NULL || end == interpreter ? 0 : (size_t)(end - 1 - interpreter);
    return mem_strndup(interpreter, length);
}

struct environment { /* a virtual one, or none */
    bool is, hides_system;
};

/* It hides the packages of the system, unless it says otherwise. */
static struct environment environment_of(const char *prefix)
{
    struct buf text AUTO_BUF = BUF_INIT(CONFIG_MAX);
    char *path AUTO_FREE = mem_printf("%s/pyvenv.cfg", prefix);
    bool is = fd_read_file(path, &text, NULL) == 0;
    bool shows = strstr(buf_text(&text), "include-system-site-packages = true") != NULL;
    return (struct environment){is, is && !shows};
}

struct prefixes { /* paths for us */
    char *own, *system, *version;
    struct environment environment;
};

static struct prefixes prefixes_of(const struct python_place *place, const char *interpreter)
{
    const char *root = place->root != NULL ? place->root : "";
    char *path AUTO_FREE = mem_printf("%s%s", root, interpreter);
    char *real AUTO_FREE = image_real(place->root, interpreter);
    struct prefixes prefixes = {.own = prefix_of(path),
                                .system = prefix_of(real != NULL ? real : path),
                                .version = version_of(real != NULL ? real : path)};
    prefixes.environment = environment_of(prefixes.own);
    return prefixes;
}

static void prefixes_free(struct prefixes *prefixes)
{
    free(prefixes->own);
    free(prefixes->system);
    free(prefixes->version);
}

static void add_system(const struct search *search, const struct prefixes *prefixes)
{
    char *local AUTO_FREE = mem_printf("%s/local", prefixes->system);
    add_prefix(search, local);
    add_prefix(search, prefixes->system);
}

/* The folder above "lib" with the user's packages. The caller frees it. NULL: there is none. */
static char *user_base(const struct python_place *place, const struct prefixes *prefixes)
{
    const char *base = place->user_base, *home = place->home;
    bool none = place->no_user_site != NULL && place->no_user_site[0] != '\0';
    if (prefixes->environment.hides_system || none || place->root != NULL)
        return NULL;
    return base != NULL && base[0] != '\0' ? mem_strdup(base)
           : home != NULL                  ? mem_printf("%s/.local", home)
                                           : NULL;
}

void python_files(const struct python_place *place, const char *interpreter, const char *pattern,
                  struct strv *out)
{
    struct prefixes prefixes = prefixes_of(place, interpreter);
    struct search search = {pattern, prefixes.version, out};
    char *user AUTO_FREE = user_base(place, &prefixes);
    add_python_path(&search, place);
    if (prefixes.environment.is)
        add_prefix(&search, prefixes.own);
    if (user != NULL) {
        char *folder AUTO_FREE =
            mem_printf("%s/lib/python%s/site-packages", user, prefixes.version);
        add_folder(&search, folder);
    }
    if (!prefixes.environment.hides_system)
        add_system(&search, &prefixes);
    prefixes_free(&prefixes);
}

void python_libraries(const struct python_place *place, const char *interpreter, struct strv *out)
{
    struct prefixes prefixes = prefixes_of(place, interpreter);
    size_t root = place->root != NULL ? strlen(place->root) : 0;
    char *user AUTO_FREE = user_base(place, &prefixes);
    if (prefixes.environment.is)
        strv_printf(out, "%s/lib", prefixes.own + root);
    if (user != NULL)
        strv_printf(out, "%s/lib", user);
    if (!prefixes.environment.hides_system && strcmp(prefixes.system + root, "/usr") != 0)
        strv_printf(out, "%s/lib", prefixes.system + root);
    prefixes_free(&prefixes);
}
