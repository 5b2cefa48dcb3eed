/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/schedule.h"

#include <string.h>

#include "base/parse.h"

#define SCHEDULE_NAME(name, text) text,
static const char *const fault_names[] = {FAULT_LIST(SCHEDULE_NAME)};
static const char *const program_names[] = {PROGRAM_LIST(SCHEDULE_NAME)};
#undef SCHEDULE_NAME

/* Every number of a schedule, for printing and reading alike. */
/* clang-format off */
#define NUMBER_LIST(X)                                                                           \
    X(work_ms) X(gate) X(repeats) X(hang_ms) X(config.np) X(config.min_np) X(config.max_np) X(config.spares)        \
    X(config.reset_limit) X(config.max_restarts) X(config.max_preemptions) X(config.idle_restarts) \
    X(config.elastic_timeout_ms) X(config.rejoin_timeout_ms) X(config.prepare_timeout_ms)        \
    X(config.grow_delay_ms) X(config.gather_ms) X(config.grace_ms) X(config.orderly_grace_ms)                        \
    X(config.cooldown_min_ms) X(config.cooldown_max_ms) X(config.reconnect_min_ms)               \
    X(config.reconnect_max_ms) X(config.failure_decay_ms) X(config.suspect_ms)                    \
    X(config.patience_ms) X(config.renotify_ms) X(config.failure_limit) X(config.early) X(config.hosts_dial_in)
/* clang-format on */

const char *fault_name(enum fault_kind kind)
{
    return fault_names[kind];
}

void schedule_print(const struct schedule *schedule, FILE *to)
{
    fprintf(to, "seed %llu\nprogram %s\nmode %s\n", (unsigned long long)schedule->seed,
            program_names[schedule->program], elastic_mode_name(schedule->config.mode));
#define SCHEDULE_WRITE(field) fprintf(to, #field " %lld\n", (long long)schedule->field);
    NUMBER_LIST(SCHEDULE_WRITE)
#undef SCHEDULE_WRITE
    for (int i = 0; i < schedule->fault_count; i++) {
        const struct fault *fault = &schedule->faults[i];
        fprintf(to, "at %lld %s %d %lld\n", (long long)fault->at_ms, fault_names[fault->kind],
                fault->host, (long long)fault->value);
    }
}

static int find_word(const char *word, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(word, names[i]) == 0)
            return i;
    }
    return -1;
}

/* Cuts `line` into at most `room` words, in place. */
static int cut(char *line, char **words, int room)
{
    int count = 0;
    for (char *at = line; *at != '\0' && count < room;) {
        at += strspn(at, " \t\r\n");
        if (*at == '\0')
            break;
        words[count++] = at;
        at += strcspn(at, " \t\r\n");
        if (*at != '\0')
            *at++ = '\0';
    }
    return count;
}

static int read_fault(struct schedule *out, char **words, struct error *err)
{
    int64_t at_ms, host, value;
    const int kind = find_word(words[2], fault_names, FAULTS);
    if (kind < 0)
        return error_set(err, "there is no fault '%s'", words[2]);
    if (out->fault_count == SCHEDULE_FAULTS)
        return error_set(err, "more than %d faults", SCHEDULE_FAULTS);
    if (parse_int(words[1], 0, INT64_MAX / 4, &at_ms, err) != 0 ||
        parse_int(words[3], 0, 1000000, &host, err) != 0 ||
        parse_int(words[4], INT64_MIN / 4, INT64_MAX / 4, &value, err) != 0)
        return -1;
    out->faults[out->fault_count++] = (struct fault){
        .at_ms = at_ms, .kind = (enum fault_kind)kind, .host = (int)host, .value = value};
    return 0;
}

static int read_setting(struct schedule *out, const char *name, const char *text, struct error *err)
{
    if (strcmp(name, "program") == 0) {
        const int program = find_word(text, program_names, PROGRAMS);
        out->program = (enum program)(program < 0 ? 0 : program);
        return program < 0 ? error_set(err, "there is no program '%s'", text) : 0;
    }
    if (strcmp(name, "mode") == 0) {
        for (int mode = ELASTIC_AUTO; mode <= ELASTIC_STOP; mode++) {
            if (strcmp(text, elastic_mode_name((enum elastic_mode)mode)) == 0) {
                out->config.mode = (enum elastic_mode)mode;
                return 0;
            }
        }
        return error_set(err, "there is no mode '%s'", text);
    }
    int64_t value;
    if (parse_int(text, INT64_MIN, INT64_MAX, &value, err) != 0)
        return -1;
    if (strcmp(name, "seed") == 0) {
        out->seed = (uint64_t)value;
        return 0;
    }
#define SCHEDULE_TAKE(field)                        \
    if (strcmp(name, #field) == 0) {                \
        out->field = (__typeof__(out->field))value; \
        return 0;                                   \
    }
    NUMBER_LIST(SCHEDULE_TAKE)
#undef SCHEDULE_TAKE
    return error_set(err, "there is no setting '%s'", name);
}

int schedule_read(FILE *from, struct schedule *out, struct error *err)
{
    memset(out, 0, sizeof(*out));
    elastic_config_init(&out->config);
    char line[256];
    while (fgets(line, sizeof(line), from) != NULL) {
        char *words[6];
        const int count = cut(line, words, 6);
        if (count == 0 || words[0][0] == '#')
            continue;
        if (count == 5 && strcmp(words[0], "at") == 0) {
            if (read_fault(out, words, err) != 0)
                return -1;
        } else if (count != 2) {
            return error_set(err, "not a line of a schedule: it begins with '%s'", words[0]);
        } else if (read_setting(out, words[0], words[1], err) != 0) {
            return -1;
        }
    }
    return 0;
}
