/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/signal_rules.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "model/exit/signal_name.h"

bool signal_rounds_is_news(struct signal_rounds *rounds, int signal, bool from_node, int64_t now_ms)
{
    if (signal <= 0 || signal > SIGNAL_NUMBER_MAX)
        return false;
    struct signal_round *round = &rounds->of[signal];
    bool under_way = round->begun_ms != 0 && now_ms - round->begun_ms < SIGNAL_ROUND_MS;
    if (under_way && (from_node || !round->ours)) {
        round->ours = round->ours || !from_node;
        return false;
    }
    *round = (struct signal_round){.begun_ms = now_ms, .ours = !from_node};
    return true;
}

#define WARNING_GRACE_MS 30000 /* if the end is unknown and --grace is not given */
#define WARNING_LATE_MS 10000  /* if the time is over already, and KillWait of Slurm runs */

#define RESERVE_MAX_MS 15000 /* of TERM and the rest */
#define TERM_MAX_MS 5000

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

struct warning_times warning_times_share(int64_t left_ms, int64_t grace_ms)
{
    int64_t term = grace_ms >= 0 ? least(grace_ms, TERM_MAX_MS) : TERM_MAX_MS;
    if (left_ms == INT64_MAX)
        return (struct warning_times){grace_ms >= 0 ? grace_ms : WARNING_GRACE_MS, term};
    if (left_ms <= 0)
        return (struct warning_times){
            grace_ms >= 0 ? least(grace_ms, WARNING_LATE_MS) : WARNING_LATE_MS, 0};
    int64_t reserve = least(left_ms / 4, RESERVE_MAX_MS);
    return (struct warning_times){left_ms - reserve, least(term, reserve / 3)};
}

/* The rules. */

/* A signal that the launcher may get; 0 and `err`: not this one. */
static int incoming(const char *place, const char *name, struct error *err)
{
    int number = signal_number(name);
    if (number == 0)
        error_usage(err, "%s: '%s' is not a signal; expected one of %s", place, name,
                    signal_passed_names());
    else if (!signal_is_passed(number))
        error_usage(err, "%s: hvdrun does not pass SIG%s on to workers; expected one of %s", place,
                    signal_short_name(number), signal_passed_names());
    return signal_is_passed(number) ? number : 0;
}

/* A signal that workers may get; 0 and `err`: not this one. */
static int outgoing(const char *place, const char *name, struct error *err)
{
    int number = signal_number(name);
    if (number != 0 && !signal_is_barred(number))
        return number;
    if (number == 0)
        error_usage(err, "%s: '%s' is not a signal; expected a name such as TERM", place, name);
    else if (number == SIGKILL)
        error_usage(err,
                    "%s: SIGKILL cannot be passed on, because workers cannot handle it; --grace 0 "
                    "kills them when the job ends",
                    place);
    else
        error_usage(err,
                    "%s: SIG%s cannot be passed on, because it stops or continues processes; send "
                    "TSTP and CONT to hvdrun instead",
                    place, signal_short_name(number));
    return 0;
}

/* "USR1:TERM" */
static int add_pair(struct signal_rules *rules, const char *place, const char *text,
                    struct error *err)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL || colon == text || colon[1] == '\0' || strchr(colon + 1, ':') != NULL)
        return error_usage(err, "%s: '%s': expected FROM:TO, as in USR1:TERM", place, text);
    char *name AUTO_FREE = mem_strndup(text, (size_t)(colon - text));
    int from = incoming(place, name, err);
    int to = from == 0 ? 0 : outgoing(place, colon + 1, err);
    if (to == 0)
        return -1;
    if (rules->sent[from] != 0 && rules->sent[from] != to)
        return error_usage(err, "%s: SIG%s is mapped twice, to SIG%s and to SIG%s", place,
                           signal_short_name(from), signal_short_name(rules->sent[from]),
                           signal_short_name(to));
    rules->sent[from] = to;
    return 0;
}

int signal_rules_from(const struct settings *settings, bool in_slurm, struct signal_rules *out,
                      struct error *err)
{
    *out = (struct signal_rules){.requeue = settings->slurm_requeue};
    if (settings->slurm_requeue && !in_slurm)
        return error_usage(err,
                           "%s: this is not a Slurm job; start hvdrun in a batch script (sbatch), "
                           "or leave the option out",
                           settings_place(settings, OPT_slurm_requeue));
    const struct strv *pairs = &settings->map_signal;
    for (size_t i = 0; i < pairs->count; i++) {
        if (add_pair(out, settings_place(settings, OPT_map_signal), pairs->items[i], err) < 0)
            return -1;
    }
    if (settings->warn_signal == NULL) {
        out->warn = in_slurm ? SIGUSR1 : 0;
    } else if (strcasecmp(settings->warn_signal, "none") != 0) {
        out->warn = incoming(settings_place(settings, OPT_warn_signal), settings->warn_signal, err);
        if (out->warn == 0)
            return -1;
    }
    out->warn_ends = out->warn != 0 && (settings->warn_signal != NULL || settings->slurm_requeue);
    return 0;
}

int signal_rules_sent(const struct signal_rules *rules, int signal)
{
    bool known = signal > 0 && signal <= SIGNAL_NUMBER_MAX;
    return known && rules->sent[signal] != 0 ? rules->sent[signal] : signal;
}

bool signal_rules_name(const struct signal_rules *rules, int signal)
{
    bool known = signal > 0 && signal <= SIGNAL_NUMBER_MAX;
    return known && (rules->warn == signal || rules->sent[signal] != 0);
}
