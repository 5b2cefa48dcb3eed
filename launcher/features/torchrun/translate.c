/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torchrun/translation.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"

#define NUMBER_MAX 1000000
#define PORT_STATIC 29500
#define PORT_C10D 29400

/* The number of a field, or `missing`. A mistake is noted. */
static int64_t number_of(struct translation *t, enum line_field field, int64_t min, int64_t max,
                         int64_t missing)
{
    int64_t number = missing;
    const char *text = line_value(t, field);
    if (text == NULL || parse_int(text, min, max, &number, NULL) == 0)
        return number;
    char *expected AUTO_FREE =
        mem_printf("expected a number from %lld to %lld", (long long)min, (long long)max);
    line_words_expect(&t->in, field, expected);
    return missing;
}

/* Ranks and hosts. */

static bool is_counted(const char *text)
{
    return strcmp(text, "gpu") == 0 || strcmp(text, "cpu") == 0 || strcmp(text, "auto") == 0;
}

/* torchrun starts one worker on a host, deepspeed and accelerate one for each GPU. */
static void translate_ranks(struct translation *t)
{
    const char *text = line_value(t, FIELD_NPROC);
    int64_t processes = number_of(t, FIELD_PROCESSES, 1, NUMBER_MAX, 0);
    bool several = t->out->nodes.max > 1;
    if (text == NULL && t->in.who == LINE_TORCHRUN)
        t->nproc = 1;
    else if (text != NULL && t->in.who == LINE_TORCHRUN && is_counted(text))
        line_putf(t, "--map-by", "ppr:%s:node", text);
    else if (text != NULL && strcmp(text, "xpu") == 0 && t->in.who == LINE_TORCHRUN)
        line_words_expect(&t->in, FIELD_NPROC,
                          "hvdrun does not count these devices; write their number");
    else if (text != NULL && parse_int(text, 1, NUMBER_MAX, &t->nproc, NULL) < 0)
        line_words_expect(&t->in, FIELD_NPROC,
                          t->in.who == LINE_TORCHRUN ? "expected a number, gpu, cpu or auto"
                                                     : "expected a number");
    if (processes > 0 && several && processes % t->out->nodes.max != 0)
        line_words_expect(&t->in, FIELD_PROCESSES, "expected a multiple of the number of hosts");
    else if (processes > 0 && several)
        t->nproc = processes / t->out->nodes.max;
    else if (processes > 0)
        line_putf(t, "-np", "%lld", (long long)processes);
    if (t->nproc > 0)
        line_putf(t, "--map-by", "ppr:%lld:node:OVERSUBSCRIBE", (long long)t->nproc);
}

static void read_nodes(struct translation *t)
{
    struct line_nodes *nodes = &t->out->nodes;
    const char *text = line_has(t, FIELD_STANDALONE) ? "1" : line_value(t, FIELD_NNODES);
    int64_t min = 0, max = 0;
    nodes->rank = (int)number_of(t, FIELD_NODE_RANK, 0, NUMBER_MAX, -1);
    if (text == NULL && nodes->rank > 0)
        line_words_expect(&t->in, FIELD_NODE_RANK,
                          "expected 0, because the line does not say how many hosts there are");
    if (text == NULL)
        return;
    size_t length = t->in.who == LINE_TORCHRUN ? strcspn(text, ":") : strlen(text);
    char *first AUTO_FREE = mem_strndup(text, length);
    const char *last = text[length] == ':' ? text + length + 1 : first;
    if (parse_int(first, 1, NUMBER_MAX, &min, NULL) < 0 ||
        parse_int(last, min, NUMBER_MAX, &max, NULL) < 0) {
        line_words_expect(&t->in, FIELD_NNODES,
                          t->in.who == LINE_TORCHRUN ? "expected a number of hosts, or MIN:MAX"
                                                     : "expected a number of hosts");
        return;
    }
    nodes->min = (int)min;
    nodes->max = (int)max;
}

/* A job of a fixed size without restarts is not elastic. */
static void translate_elastic(struct translation *t)
{
    struct line_nodes *nodes = &t->out->nodes;
    int64_t restarts = number_of(t, FIELD_MAX_RESTARTS, 0, NUMBER_MAX, 0);
    bool range = nodes->min < nodes->max;
    if (restarts == 0 && !range)
        return;
    line_putf(t, "--max-restarts", "%lld", (long long)restarts);
    if (t->nproc > 0)
        line_putf(t, "--slots-per-host", "%lld",
                  (long long)t->nproc); /* of hosts that come later */
    if (!range && nodes->max > 0 && t->nproc > 0) {
        line_putf(t, "-np", "%lld", (long long)(nodes->max * t->nproc));
        nodes->reserve = true;
    } else if (range && t->nproc == 0) {
        line_words_expect(&t->in, FIELD_NNODES, "with MIN:MAX, --nproc-per-node must be a number");
    } else if (range) {
        line_putf(t, "--min-np", "%lld", (long long)(nodes->min * t->nproc));
        line_putf(t, "--max-np", "%lld", (long long)(nodes->max * t->nproc));
    }
}

/* Where the hosts meet. */

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

/* HOST, HOST:PORT or [HOST]:PORT. -1: it is not. A lone IPv6 address has several colons. */
static int read_endpoint(const char *text, int port, struct line_nodes *out)
{
    bool bracket = *text == '[';
    const char *host = text + bracket, *end = strchr(text, bracket ? ']' : ':');
    int64_t number = port;
    if (bracket && end == NULL)
        return -1;
    if (end == NULL || (!bracket && strchr(end + 1, ':') != NULL))
        end = text + strlen(text);
    const char *rest = end + (bracket ? 1 : 0);
    if (*rest != '\0' && (*rest != ':' || parse_int(rest + 1, 0, 65535, &number, NULL) < 0))
        return -1;
    if (!name_is_safe(host, (size_t)(end - host)))
        return -1;
    free(out->meeting_host);
    out->meeting_host = mem_strndup(host, (size_t)(end - host));
    out->meeting_port = (int)number;
    return 0;
}

static void expect_conf(struct translation *t, const char *key, const char *value,
                        const char *expected)
{
    strv_printf(&t->in.wrong, "%s: %s %s=%s: expected %s", t->in.launcher,
                t->in.places[FIELD_RDZV_CONF], key, value, expected);
}

static int64_t seconds_of(struct translation *t, const char *key, const char *value, int64_t min)
{
    int64_t seconds = min;
    if (parse_int(value, min, NUMBER_MAX, &seconds, NULL) < 0)
        expect_conf(t, key, value, "seconds");
    return seconds;
}

/* Of --rdzv-conf, three keys have a meaning here. torchrun has others for its store, for what its
 * agents tell each other, and for etcd. */
static void take_conf(struct translation *t, const char *key, const char *value)
{
    static const char *const idle[] = {"close_timeout",
                                       "heartbeat_timeout",
                                       "keep_alive_interval",
                                       "keep_alive_max_attempt",
                                       "read_timeout",
                                       "store_type",
                                       "timeout",
                                       "use_libuv",
                                       "use_agent_store",
                                       "rank",
                                       NULL};
    struct line_nodes *nodes = &t->out->nodes;
    bool yes = false;
    if (strcmp(key, "join_timeout") == 0)
        nodes->join_seconds = (int)seconds_of(t, key, value, 1);
    else if (strcmp(key, "last_call_timeout") == 0)
        nodes->last_call_ms = (int)seconds_of(t, key, value, 0) * 1000 + 1; /* 0 is not said */
    else if (strcmp(key, "is_host") == 0 && parse_bool(value, &yes, NULL) == 0)
        nodes->is_first = yes;
    else if (strcmp(key, "is_host") == 0)
        expect_conf(t, key, value, "true or false");
    else if (line_known(key, idle) == NULL)
        strv_printf(&t->out->warnings, "%s: %s %s: hvdrun does not know this key", t->in.launcher,
                    t->in.places[FIELD_RDZV_CONF], plain_show(key, strlen(key)).text);
}

static void read_conf(struct translation *t)
{
    const char *at = line_value(t, FIELD_RDZV_CONF);
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, ","), name = strcspn(at, "=");
        if (name >= length) {
            line_words_expect(&t->in, FIELD_RDZV_CONF, "expected KEY=VALUE,...");
            return;
        }
        char *key AUTO_FREE = mem_strndup(at, name);
        char *value AUTO_FREE = mem_strndup(at + name + 1, length - name - 1);
        take_conf(t, key, value);
        at += length + (at[length] == ',');
    }
}

/* Workers learn MASTER_ADDR and MASTER_PORT from the line only with the static backend. hvdrun
 * chooses better than a loopback address, which other hosts could not reach. */
static void translate_meeting(struct translation *t)
{
    struct line_nodes *nodes = &t->out->nodes;
    const char *backend = line_value(t, FIELD_RDZV_BACKEND), *address = NULL;
    const char *endpoint = line_value(t, FIELD_RDZV_ENDPOINT),
               *local = line_value(t, FIELD_LOCAL_ADDR);
    bool c10d = backend != NULL && strcmp(backend, "c10d") == 0;
    if (backend != NULL && !c10d && strcmp(backend, "static") != 0)
        line_words_expect(&t->in, FIELD_RDZV_BACKEND,
                          "hvdrun has c10d and static; it needs no other service, so leave it out");
    int64_t port = number_of(t, FIELD_MASTER_PORT, 0, 65535, 0);
    read_conf(t);
    if (line_has(t, FIELD_STANDALONE))
        return;
    if (endpoint != NULL && read_endpoint(endpoint, c10d ? PORT_C10D : PORT_STATIC, nodes) < 0)
        line_words_expect(&t->in, FIELD_RDZV_ENDPOINT, "expected HOST:PORT");
    else if (endpoint == NULL && line_has(t, FIELD_MASTER_ADDR) &&
             read_endpoint(line_value(t, FIELD_MASTER_ADDR), PORT_STATIC, nodes) < 0)
        line_words_expect(&t->in, FIELD_MASTER_ADDR, "expected an address");
    if (endpoint == NULL && port > 0)
        nodes->meeting_port = (int)port;
    if (!c10d)
        address = nodes->meeting_host;
    if (address == NULL && local != NULL && !is_loopback(local))
        t->out->own_address = mem_strdup(local);
    if (address != NULL && !is_loopback(address))
        line_putf(t, "-x", "MASTER_ADDR=%s", address);
    if (!c10d && (endpoint != NULL ? strchr(endpoint, ':') != NULL : port > 0) &&
        nodes->meeting_port > 0)
        line_putf(t, "--master-port", "%d", nodes->meeting_port);
    if (nodes->meeting_host != NULL && nodes->meeting_port == 0) {
        free(nodes->meeting_host); /* others cannot know the port */
        nodes->meeting_host = NULL;
    }
    if (line_has(t, FIELD_RDZV_ID))
        nodes->meeting_id = mem_strdup(line_value(t, FIELD_RDZV_ID));
}

/* What of a worker's output the console shows, by torchrun's --redirects, --tee and
 * --local-ranks-filter.
 *
 * A stream is `0` (none), `1` (stdout), `2` (stderr) or `3` (both), for all local ranks, or for
 * some: `0:1,1:2`. */

#define CONSOLE_RANKS 1024 /* local ranks that a list can name */
#define BOTH 3

struct streams {
    unsigned char of[CONSOLE_RANKS]; /* by local rank: bit 0 is stdout, bit 1 stderr */
    unsigned char rest;              /* of all others */
    int named;                       /* local ranks below this one are in `of` */
};

/* A number below `limit`. Returns the text behind it, NULL: there is none. */
static const char *read_number(const char *at, int limit, int *out)
{
    int value = 0;
    if (*at < '0' || *at > '9')
        return NULL;
    for (; *at >= '0' && *at <= '9' && value < limit; at++)
        value = value * 10 + (*at - '0');
    *out = value;
    return value < limit ? at : NULL;
}

static void name_rank(struct streams *streams, int rank, int value)
{
    for (int i = streams->named; i <= rank; i++)
        streams->of[i] = streams->rest;
    if (rank >= streams->named)
        streams->named = rank + 1;
    streams->of[rank] = (unsigned char)value;
}

/* "0:1,1:2", or the list of a filter: "0,2". */
static int read_ranks(const char *at, bool filter, struct streams *out)
{
    int rank = 0, value = BOTH;
    while (*at != '\0') {
        at = read_number(at, CONSOLE_RANKS, &rank);
        if (at != NULL && !filter)
            at = *at == ':' ? read_number(at + 1, BOTH + 1, &value) : NULL;
        if (at == NULL || (*at != ',' && *at != '\0'))
            return -1;
        name_rank(out, rank, value);
        at += *at == ',';
    }
    return out->named > 0 ? 0 : -1;
}

/* NULL is none. -1: the text is not such a value. */
static int streams_read(const char *text, struct streams *out)
{
    int value = 0;
    const char *at = text == NULL ? "0" : text, *end = read_number(at, BOTH + 1, &value);
    bool all = end != NULL && *end == '\0';
    *out = (struct streams){.rest = (unsigned char)(all ? value : 0)};
    return all ? 0 : read_ranks(at, false, out);
}

/* NULL: all. */
static int streams_read_filter(const char *text, struct streams *out)
{
    *out = (struct streams){.rest = text == NULL ? BOTH : 0};
    return text == NULL ? 0 : read_ranks(text, true, out);
}

static bool streams_any(const struct streams *streams)
{
    bool any = streams->rest != 0;
    for (int i = 0; i < streams->named; i++)
        any = any || streams->of[i] != 0;
    return any;
}

static unsigned streams_of(const struct streams *streams, int rank)
{
    return rank < streams->named ? streams->of[rank] : streams->rest;
}

static void put_shown(unsigned shown, int rank, const char *range, struct buf *out)
{
    static const char *const streams[] = {"", ":stdout", ":stderr", ""};
    if (shown != 0)
        buf_printf(out, "%sl%d%s%s", out->length > 0 ? "," : "", rank, range, streams[shown]);
}

/* Appends the value of --ranks. Nothing: the console shows all. A stream that is redirected goes
 * only to its file, unless it is in `tee`. */
static void console_ranks(const struct streams *redirected, const struct streams *tee,
                          const struct streams *filter, struct buf *out)
{
    int named = filter->named;
    bool all = true;
    named = redirected->named > named ? redirected->named : named;
    named = tee->named > named ? tee->named : named;
    for (int rank = 0; rank <= named; rank++) {
        unsigned shown =
            streams_of(filter, rank) & ~(streams_of(redirected, rank) & ~streams_of(tee, rank));
        all = all && shown == BOTH;
        put_shown(shown, rank, rank < named ? "" : "-", out);
    }
    if (all)
        buf_clear(out);
    else if (out->length == 0)
        buf_puts(out, "none");
}

/* DIR/ID_STAMP/RANK/stdout.log; the percent signs of DIR are doubled. */
static void put_files(struct translation *t)
{
    struct buf pattern AUTO_BUF = BUF_INIT(LINE_TEXT_MAX);
    const char *id = line_value(t, FIELD_RDZV_ID), *folder = line_value(t, FIELD_LOG_DIR);
    char *own AUTO_FREE = mem_printf(
        "%s/%s%s_%s", folder == NULL ? line_variable(t->envp, "TMPDIR", "/tmp") : folder,
        folder == NULL ? "torchelastic_" : "", id == NULL ? "none" : id, t->machine->stamp);
    for (const char *at = own; *at != '\0'; at++) {
        buf_putc(&pattern, *at);
        if (*at == '%')
            buf_putc(&pattern, '%');
    }
    buf_puts(&pattern, "/%r/%s.log");
    line_put(t, "--output-filename", buf_text(&pattern));
}

static void translate_output(struct translation *t)
{
    struct streams redirected, tee, filter;
    struct buf ranks AUTO_BUF = BUF_INIT(LINE_TEXT_MAX);
    static const char expected[] = "expected 0 to 3, or for local ranks 0:1,1:2";
    if (streams_read(line_value(t, FIELD_REDIRECTS), &redirected) < 0)
        line_words_expect(&t->in, FIELD_REDIRECTS, expected);
    else if (streams_read(line_value(t, FIELD_TEE), &tee) < 0)
        line_words_expect(&t->in, FIELD_TEE, expected);
    else if (streams_read_filter(line_value(t, FIELD_FILTER), &filter) < 0)
        line_words_expect(&t->in, FIELD_FILTER, "expected local ranks such as 0,2");
    else {
        console_ranks(&redirected, &tee, &filter, &ranks);
        if (ranks.length > 0)
            line_put(t, "--ranks", buf_text(&ranks));
        if (streams_any(&redirected) || streams_any(&tee))
            put_files(t);
    }
}

/* What has no meaning in hvdrun, but must be right. */
static void check_idle(struct translation *t)
{
    static const char *const methods[] = {"spawn", "fork", "forkserver", NULL};
    const char *method = line_value(t, FIELD_START_METHOD),
               *interval = line_value(t, FIELD_MONITOR);
    double seconds = 0;
    if (method != NULL && line_known(method, methods) == NULL)
        line_words_expect(&t->in, FIELD_START_METHOD, "expected spawn, fork or forkserver");
    if (interval != NULL && parse_double(interval, 0, NUMBER_MAX, &seconds, NULL) < 0)
        line_words_expect(&t->in, FIELD_MONITOR, "expected seconds");
}

/* hvdrun sets PYTHONUNBUFFERED, so Python needs no -u. */
static void translate_program(struct translation *t)
{
    static const char run_path[] = "import runpy, sys; del sys.argv[0]; "
                                   "runpy.run_path(sys.argv[0], run_name='__main__')";
    static const char *const local_rank[] = {
        "p=$1 s=$2; shift 2; exec \"$p\" \"$s\" --local_rank=$LOCAL_RANK \"$@\"",
        "p=$1 s=$2; shift 2; exec \"$p\" -m \"$s\" --local_rank=$LOCAL_RANK \"$@\"",
        "s=$1; shift; exec \"$s\" --local_rank=$LOCAL_RANK \"$@\""};
    const char *python = line_variable(t->envp, "PYTHON_EXEC", "python3");
    bool module = line_has(t, FIELD_MODULE), bare = line_has(t, FIELD_NO_PYTHON);
    if (t->in.program[0] == NULL) {
        if (t->in.wrong.count == 0)
            strv_printf(&t->in.wrong, "%s: the script is missing", t->in.launcher);
        return;
    }
    if (module && bare)
        strv_printf(&t->in.wrong, "%s: %s and %s contradict each other: give one", t->in.launcher,
                    t->in.places[FIELD_MODULE], t->in.places[FIELD_NO_PYTHON]);
    line_put(t, "--", NULL);
    if (t->in.who == LINE_DEEPSPEED && !line_has(t, FIELD_NO_LOCAL_RANK)) {
        line_put(t, "sh", "-c");
        line_put(t, local_rank[bare ? 2 : module], "sh");
        if (!bare)
            line_put(t, python, NULL);
    } else if (line_has(t, FIELD_RUN_PATH)) {
        line_put(t, python, "-c");
        line_put(t, run_path, NULL);
    } else if (!bare) {
        line_put(t, python, module ? "-m" : NULL);
    }
    strv_copy(&t->out->words, t->in.program);
}

static void translate(struct translation *t)
{
    read_nodes(t);
    translate_ranks(t);
    translate_elastic(t);
    translate_meeting(t);
    if (line_has(t, FIELD_RDZV_ID) && !line_has(t, FIELD_STANDALONE))
        line_putf(t, "-x", "TORCHELASTIC_RUN_ID=%s", line_value(t, FIELD_RDZV_ID));
    translate_output(t);
    if (line_has(t, FIELD_EACH_LOG))
        line_put(t, "--output-filename", line_value(t, FIELD_EACH_LOG));
    deepspeed_hosts(t);
    accelerate_variables(t);
    check_idle(t);
    strv_copy(&t->out->words, strv_items(&t->in.direct));
    translate_program(t);
}

int translate_line(char *const *words, char *const *envp, const struct line_machine *machine,
                   struct line *out, struct error *err)
{
    struct translation t = {.envp = envp, .machine = machine, .out = out};
    out->nodes = (struct line_nodes){.rank = -1, .is_first = -1};
    line_words_read(words, envp, &t.in);
    out->nodes.launcher = t.in.launcher;
    struct strv *wrong = &t.in.wrong;
    if (t.in.help) {
        struct buf text AUTO_BUF = BUF_INIT(LINE_TEXT_MAX);
        line_words_help(&t.in, &text);
        out->help = mem_strdup(buf_text(&text));
        strv_add(&out->words, "--help");
        strv_destroy(wrong);
    } else {
        translate(&t);
    }
    int rc = 0;
    if (wrong->count > 0) {
        rc = error_usage(err, "%s", wrong->items[0]);
        strv_destroy(&out->words);
        if (wrong->count == t.in.refused && t.in.program[0] != NULL)
            strv_copy(&out->words, strv_items(&t.in.kept));
    }
    for (size_t i = 1; i < wrong->count; i++)
        strv_add(&out->more, wrong->items[i]);
    strv_copy(&out->unknown, strv_items(&t.in.unknown));
    line_words_destroy(&t.in);
    return rc;
}

enum role role_of(const struct line_nodes *nodes, size_t hosts, bool meets_here)
{
    if (hosts >= (size_t)nodes->max)
        return ROLE_ALONE;
    if (nodes->meeting_host == NULL)
        return hosts >= (size_t)nodes->min ? ROLE_ALONE : ROLE_WRONG;
    if (nodes->is_first >= 0)
        return nodes->is_first > 0 ? ROLE_DRIVER : ROLE_DIAL;
    if (nodes->rank >= 0)
        return nodes->rank == 0 ? ROLE_DRIVER : ROLE_DIAL;
    return meets_here ? ROLE_DRIVER : ROLE_DIAL;
}
