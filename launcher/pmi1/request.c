/* SPDX-License-Identifier: Apache-2.0 */
#include "pmi1/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Where the value of a word ends. */
static char *value_end(const char *name, char *value)
{
    if (strcmp(name, "value") == 0 || strcmp(name, "port") == 0 || strcmp(name, "msg") == 0 ||
        strcmp(name, "message") == 0)
        return value + strlen(value);
    if (strcmp(name, "service") == 0) {
        char *port = strstr(value, " port=");
        return port != NULL ? port : value + strlen(value);
    }
    return value + strcspn(value, " ");
}

/* Cuts the word that starts at *place out of the line and moves *place behind it. */
static int cut_word(char **place, const char **name, const char **value)
{
    char *word = *place;
    char *equals = word + strcspn(word, "= ");
    if (*equals != '=' || equals == word)
        return -1;
    *equals = '\0';
    *name = word;
    *value = equals + 1;
    char *end = value_end(word, equals + 1);
    if (*end != '\0')
        *end++ = '\0';
    *place = end + strspn(end, " ");
    return 0;
}

int pmi1_line_parse(struct pmi1_line *line, const char *bytes, size_t length, struct error *err)
{
    if (length > 0 && bytes[length - 1] == '\r')
        length--;
    if (length >= PMI1_LINE_MAX)
        return error_set(err, "a line of %zu bytes, more than the %d allowed", length,
                         PMI1_LINE_MAX - 1);
    if (memchr(bytes, '\0', length) != NULL)
        return error_set(err, "a line with a zero byte");
    memcpy(line->text, bytes, length);
    line->text[length] = '\0';
    line->command = NULL;
    line->words = 0;
    char *place = line->text + strspn(line->text, " ");
    while (*place != '\0') {
        const char *name = NULL;
        const char *value = NULL;
        if (cut_word(&place, &name, &value) < 0)
            return error_set(err, "a word that is not NAME=VALUE");
        if (line->command == NULL) {
            line->block = strcmp(name, "mcmd") == 0;
            if (!line->block && strcmp(name, "cmd") != 0)
                return error_set(err, "a line that does not begin with cmd=");
            line->command = value;
        } else if (line->words == PMI1_WORDS_MAX) {
            return error_set(err, "a line of more than %d words", PMI1_WORDS_MAX);
        } else {
            line->names[line->words] = name;
            line->values[line->words++] = value;
        }
    }
    if (line->command == NULL)
        return error_set(err, "an empty line");
    return 0;
}

const char *pmi1_line_get(const struct pmi1_line *line, const char *name)
{
    for (size_t i = 0; i < line->words; i++)
        if (strcmp(line->names[i], name) == 0)
            return line->values[i];
    return NULL;
}

/* One of the reasons of what programs do not send: it cannot travel over PMI-1. */
#define LINE_BREAK "; perhaps an argument has a line break"

/* ---- The values of a block ------------------------------------------------------------------- */

static struct pmi1_spawn_app *app_of(const struct spawn_block *block)
{
    return &block->request.apps[block->request.app_count - 1];
}

/* Each says why a value makes no sense, and NULL if it does. The value is not repeated: it may hold
 * anything. */

static const char *take_execname(struct spawn_block *block, const char *value)
{
    if (*value == '\0')
        return "a program without a name";
    strv_add(&app_of(block)->argv, value);
    return NULL;
}

static const char *take_argument(struct spawn_block *block, const char *value)
{
    struct strv *argv = &app_of(block)->argv;
    if (argv->count == 0)
        return "an argument before the program";
    strv_add(argv, value);
    return NULL;
}

#define KEY_ALONE "a key without its value"

static const char *take_key(struct spawn_block *block, const char *value)
{
    if (block->key != NULL)
        return KEY_ALONE;
    if (*value == '\0')
        return "an empty key";
    block->key = mem_strdup(value);
    return NULL;
}

static bool is_preput(const struct spawn_block *block, const char *key)
{
    bool found = strcmp(key, PMI1_MAPPING_KEY) == 0;
    for (size_t i = 0; i < block->request.preput.count && !found; i += 2)
        found = strcmp(block->request.preput.items[i], key) == 0;
    return found;
}

#define VALUE_ALONE "a value without its key"

/* Each block of a request says the same of them, so that the first one is enough. */
static const char *take_preput(struct spawn_block *block, const char *value)
{
    char *key AUTO_FREE = block->key;
    block->key = NULL;
    if (key == NULL)
        return VALUE_ALONE;
    if (strlen(key) >= PMI1_KEY_MAX)
        return "a key that is too long";
    if (strlen(value) >= PMI1_VALUE_MAX)
        return "a value that is too long";
    if (block->request.app_count > 1)
        return NULL;
    if (block->counts[SPAWN_PREPUT_VAL] > SPAWN_PREPUT_MAX)
        return "too many keys";
    if (is_preput(block, key))
        return "a key that has a value";
    strv_add(&block->request.preput, key);
    strv_add(&block->request.preput, value);
    return NULL;
}

/* What MPI reserves, and "hosts", as MPICH's launcher says. */
static const char *take_info(struct spawn_block *block, const char *value)
{
    struct pmi1_spawn_app *app = app_of(block);
    char *key AUTO_FREE = block->key;
    block->key = NULL;
    if (key == NULL)
        return VALUE_ALONE;
    bool host =
        strcmp(key, "host") == 0 || strcmp(key, "hosts") == 0 || strcmp(key, "add-host") == 0;
    char **place = host                       ? &app->hosts
                   : strcmp(key, "wdir") == 0 ? &app->wdir
                   : strcmp(key, "path") == 0 ? &block->path
                                              : NULL;
    if (place != NULL) {
        mem_replace(place, value);
    }
    return NULL;
}

/* ---- The lines of a block -------------------------------------------------------------------- */

#define ONCE (-1)
#define NO_NUMBER (-1)

static const struct {
    const char *name;
    int first; /* of the numbers behind the name, which count up; ONCE: it has none */
    const char *(*take)(struct spawn_block *block, const char *value); /* NULL: a number */
    int64_t min, max;                                                  /* of it */
} values[SPAWN_NAMES] = {
    [SPAWN_NPROCS] = {"nprocs", ONCE, NULL, 0, INT32_MAX},
    [SPAWN_EXECNAME] = {"execname", ONCE, take_execname, 0, 0},
    [SPAWN_TOTSPAWNS] = {"totspawns", ONCE, NULL, 1, PMI1_SPAWN_APPS_MAX},
    [SPAWN_SPAWNSSOFAR] = {"spawnssofar", ONCE, NULL, 1, PMI1_SPAWN_APPS_MAX},
    [SPAWN_ARGCNT] = {"argcnt", ONCE, NULL, 0, INT32_MAX},
    [SPAWN_ARG] = {"arg", 1, take_argument, 0, 0},
    [SPAWN_PREPUT_NUM] = {"preput_num", ONCE, NULL, 0, INT32_MAX},
    [SPAWN_PREPUT_KEY] = {"preput_key_", 0, take_key, 0, 0},
    [SPAWN_PREPUT_VAL] = {"preput_val_", 0, take_preput, 0, 0},
    [SPAWN_INFO_NUM] = {"info_num", ONCE, NULL, 0, INT32_MAX},
    [SPAWN_INFO_KEY] = {"info_key_", 0, take_key, 0, 0},
    [SPAWN_INFO_VAL] = {"info_val_", 0, take_info, 0, 0},
};

/* SPAWN_NAMES: the name is unknown. `*number` is behind the others. */
static int find_name(const char *name, int64_t *number)
{
    for (int i = 0; i < SPAWN_NAMES; i++) {
        size_t length = strlen(values[i].name);
        if (strncmp(name, values[i].name, length) != 0)
            continue;
        if (values[i].first == ONCE ? name[length] == '\0'
                                    : parse_int(name + length, 0, INT32_MAX, number, NULL) == 0)
            return i;
    }
    return SPAWN_NAMES;
}

/* The request will get an error for its answer, if its end can be found. The first reason counts.
 */
static int refuse(struct spawn_block *block, const char *what)
{
    if (block->refusal == NULL)
        block->refusal = mem_strdup(what);
    return 0;
}

/* The name is repeated only if it is a plain word: it may be the rest of any argument. */
static int refuse_name(struct spawn_block *block, const char *name, const char *why)
{
    size_t length = strnlen(name, PMI1_KEY_MAX);
    bool plain = name_is_safe(name, length);
    char *what AUTO_FREE =
        mem_printf("%s%.*s, which is %s" LINE_BREAK, plain ? "the line " : "a line",
                   plain ? (int)length : 0, name, why);
    return refuse(block, what);
}

/* With these, the end of a request is beyond doubt. Without them, or if one of them is wrong,
 * nobody can say whether the rank waits for an answer. */
static bool says_the_end(int i)
{
    return i == SPAWN_TOTSPAWNS || i == SPAWN_SPAWNSSOFAR;
}

static int take_number(struct spawn_block *block, int i, const char *value, struct error *err)
{
    const char *name = values[i].name;
    if (parse_int(value, values[i].min, values[i].max, &block->numbers[i], NULL) == 0)
        return 0;
    block->numbers[i] = NO_NUMBER;
    if (says_the_end(i))
        return error_set(err, "a spawn whose %s is not a number in its range" LINE_BREAK, name);
    return refuse_name(block, name, "not a number in its range");
}

static int take(struct spawn_block *block, const char *name, const char *value, struct error *err)
{
    int64_t number = 0;
    int i = find_name(name, &number);
    if (i == SPAWN_NAMES)
        return refuse_name(block, name, "unknown to hvdrun");
    if (values[i].first != ONCE && number != values[i].first + block->counts[i])
        return refuse_name(block, name, "not in its order");
    if (values[i].first == ONCE && block->counts[i] > 0)
        return says_the_end(i) ? error_set(err, "a spawn with a second %s" LINE_BREAK, name)
                               : refuse_name(block, name, "repeated");
    block->counts[i]++;
    if (values[i].take == NULL)
        return take_number(block, i, value, err);
    const char *why = values[i].take(block, value);
    return why == NULL ? 0 : refuse(block, why);
}

/* The info key "path" is the folder of the program, as MPICH's launcher understands it. */
static void enter_path(struct spawn_block *block)
{
    char *path AUTO_FREE = block->path;
    char **program = app_of(block)->argv.items;
    block->path = NULL;
    if (path == NULL || *path == '\0' || strchr(*program, '/') != NULL)
        return;
    char *name AUTO_FREE = *program;
    *program = mem_printf("%s/%s", path, name);
}

/* There are as many of these lines as the block says. */
static int compare_count(struct spawn_block *block, int counter, int lines, struct error *err)
{
    if (block->counts[counter] == 0 && block->counts[lines] > 0) {
        char *what AUTO_FREE = mem_printf("lines %s without a line %s" LINE_BREAK,
                                          values[lines].name, values[counter].name);
        return refuse(block, what);
    }
    int64_t number = block->numbers[counter];
    if (number != NO_NUMBER && number != block->counts[lines])
        return error_set(err, "a spawn whose lines are not as many as it says" LINE_BREAK);
    return 0;
}

/* Why a request that is complete cannot be understood. */
static int look_back(struct spawn_block *block, struct error *err)
{
    if (compare_count(block, SPAWN_ARGCNT, SPAWN_ARG, err) < 0 ||
        compare_count(block, SPAWN_PREPUT_NUM, SPAWN_PREPUT_VAL, err) < 0 ||
        compare_count(block, SPAWN_INFO_NUM, SPAWN_INFO_VAL, err) < 0)
        return -1;
    if (block->key != NULL)
        refuse(block, KEY_ALONE);
    if (app_of(block)->argv.count == 0)
        refuse(block, "no program");
    for (int i = SPAWN_TOTSPAWNS; block->refusal != NULL && i <= SPAWN_SPAWNSSOFAR; i++)
        if (block->counts[i] == 0)
            return error_set(err, "a spawn that hvdrun cannot read, without %s", values[i].name);
    return 0;
}

static int end_block(struct spawn_block *block, struct error *err)
{
    struct pmi1_spawn_app *app = app_of(block);
    size_t number = block->request.app_count;
    /* a request of one program need not say so */
    int64_t total = block->counts[SPAWN_TOTSPAWNS] > 0 ? block->numbers[SPAWN_TOTSPAWNS] : 1;
    if (look_back(block, err) < 0)
        return -1;
    if (number > 1 && total != block->total)
        return error_set(err, "a spawn with a number of programs that changes");
    if (block->counts[SPAWN_SPAWNSSOFAR] > 0 && (size_t)block->numbers[SPAWN_SPAWNSSOFAR] != number)
        return error_set(err, "a spawn whose programs are not in their order");
    app->np = (int)block->numbers[SPAWN_NPROCS];
    block->total = total;
    if (block->refusal == NULL)
        enter_path(block);
    block->open = false;
    return number == (size_t)total;
}

void spawn_block_open(struct spawn_block *block)
{
    struct pmi1_spawn *request = &block->request;
    MEM_ADD_ROOM(request->apps, request->app_count, request->room) =
        (struct pmi1_spawn_app){.np = 0};
    memset(block->counts, 0, sizeof(block->counts));
    memset(block->numbers, 0, sizeof(block->numbers));
    block->open = true;
}

int spawn_block_line(struct spawn_block *block, const char *bytes, size_t length, struct error *err)
{
    block->bytes += length + sizeof(char *);
    if (block->bytes > PMI1_SPAWN_BYTES_MAX)
        return error_set(err, "a spawn of more than %zu MiB", PMI1_SPAWN_BYTES_MAX >> 20);
    if (memchr(bytes, '\0', length) != NULL)
        return error_set(err, "a line with a zero byte");
    char *line AUTO_FREE = mem_strndup(bytes, length);
    if (strcmp(line, "endcmd") == 0)
        return end_block(block, err);
    char *equals = strchr(line, '=');
    if (equals == NULL && strncmp(line, "endcmd", strlen("endcmd")) == 0)
        return error_set(err, "a spawn with more behind endcmd than the end of its line");
    if (equals == NULL)
        return refuse(block, "a line that is not NAME=VALUE" LINE_BREAK);
    *equals = '\0';
    return take(block, line, equals + 1, err);
}

bool spawn_block_is_due(const struct spawn_block *block)
{
    return block->request.app_count > 0 && !block->open;
}

void spawn_block_clear(struct spawn_block *block)
{
    for (size_t i = 0; i < block->request.app_count; i++) {
        struct pmi1_spawn_app *app = &block->request.apps[i];
        strv_destroy(&app->argv);
        free(app->wdir);
        free(app->hosts);
    }
    free(block->request.apps);
    free(block->key);
    free(block->path);
    free(block->refusal);
    strv_destroy(&block->request.preput);
    *block = (struct spawn_block){0};
}
