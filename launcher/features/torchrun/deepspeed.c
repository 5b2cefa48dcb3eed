/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torchrun/translation.h"

#include <ctype.h>

#include "base/mem.h"
#include "base/parse.h"

/* How many numbers are in "0,2": 0 in an empty list, -1 if one of them is not one, or is there
 * twice. */
static int count_devices(const char *list)
{
    int count = 0;
    for (const char *at = list; *at != '\0' || (count > 0 && at[-1] == ','); count++) {
        size_t length = strspn(at, "0123456789");
        for (const char *old = list; old < at; old += strcspn(old, ",") + 1) {
            if (strcspn(old, ",") == length && memcmp(old, at, length) == 0)
                return -1;
        }
        if (length == 0 || (at[length] != ',' && at[length] != '\0'))
            return -1;
        at += length + (at[length] == ',');
    }
    return count;
}

/* What is wrong with a part of --include? NULL: nothing. `devices` are those of the first host. */
static const char *judge_part(const struct translation *t, const char *host, size_t length,
                              const char *list, const char *devices)
{
    if (!name_is_safe(host, length) || (list != NULL && count_devices(list) <= 0))
        return "expected HOST@HOST, or HOST:0,1@HOST:0,1";
    if (devices != NULL && strcmp(devices, list == NULL ? "" : list) != 0)
        return "all hosts need the same devices; for others, write a program for each host: hvdrun "
               "-H a:4,b:2 -np 4 PROGRAM : -np 2 -x CUDA_VISIBLE_DEVICES=0,2 PROGRAM";
    if (list == NULL && line_has(t, FIELD_HOSTFILE))
        return "with a hostfile, name the devices of each host, as in HOST:0,1";
    return NULL;
}

/* As DeepSpeed, without the file it uses this machine. */
static void put_hostfile(struct translation *t)
{
    const char *file = line_value(t, FIELD_HOSTFILE);
    if (file == NULL)
        return;
    if (strcmp(file, "/job/hostfile") != 0 || t->machine->has_file(file))
        line_put(t, "--hostfile", file);
    else
        strv_printf(&t->out->warnings, "deepspeed: %s is missing: the job runs on this machine",
                    file);
}

void deepspeed_hosts(struct translation *t)
{
    struct buf hosts AUTO_BUF = BUF_INIT(LINE_TEXT_MAX);
    char *devices AUTO_FREE = NULL;
    const char *at = line_value(t, FIELD_INCLUDE);
    if (at == NULL)
        put_hostfile(t);
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, "@"), name = strcspn(at, ":@");
        char *list AUTO_FREE = name < length ? mem_strndup(at + name + 1, length - name - 1) : NULL;
        const char *wrong = judge_part(t, at, name, list, devices);
        if (wrong != NULL) {
            line_words_expect(&t->in, FIELD_INCLUDE, wrong);
            return;
        }
        buf_printf(&hosts, "%s%.*s", hosts.length > 0 ? "," : "", (int)name, at);
        if (list != NULL)
            buf_printf(&hosts, ":%d", count_devices(list));
        if (devices == NULL)
            devices = mem_strdup(list == NULL ? "" : list);
        at += length + (at[length] == '@');
    }
    if (hosts.length > 0)
        line_put(t, "-H", buf_text(&hosts));
    if (devices != NULL && devices[0] != '\0')
        line_putf(t, "-x", "CUDA_VISIBLE_DEVICES=%s", devices);
}

/* A file that `accelerate launch` would read. */
static void warn_of_configuration(struct translation *t)
{
    const char *cache = line_variable(t->envp, "XDG_CACHE_HOME", NULL);
    char *own AUTO_FREE =
        mem_printf("%s%s", cache == NULL ? line_variable(t->envp, "HOME", "") : cache,
                   cache == NULL ? "/.cache/huggingface" : "/huggingface");
    char *path AUTO_FREE =
        mem_printf("%s/accelerate/default_config.yaml", line_variable(t->envp, "HF_HOME", own));
    if (t->machine->has_file(path))
        strv_printf(&t->out->warnings,
                    "accelerate: hvdrun does not read %s; give its values as options", path);
}

void accelerate_variables(struct translation *t)
{
    static const char *const precisions[] = {"no", "fp16", "bf16", "fp8", NULL};
    const char *gpus = line_value(t, FIELD_GPU_IDS), *dynamo = line_value(t, FIELD_DYNAMO);
    const char *precision = line_value(t, FIELD_PRECISION);
    if (t->in.who != LINE_ACCELERATE)
        return;
    warn_of_configuration(t);
    if (gpus != NULL && strcmp(gpus, "all") != 0)
        line_putf(t, "-x", "CUDA_VISIBLE_DEVICES=%s", gpus);
    precision = line_known(precision == NULL ? "no" : precision, precisions);
    if (precision == NULL)
        line_words_expect(&t->in, FIELD_PRECISION, "expected no, fp16, bf16 or fp8");
    else
        line_putf(t, "-x", "ACCELERATE_MIXED_PRECISION=%s", precision);
    char *upper AUTO_FREE = mem_strdup(dynamo == NULL ? "no" : dynamo);
    for (char *at = upper; *at != '\0'; at++)
        *at = (char)toupper((unsigned char)*at);
    line_putf(t, "-x", "ACCELERATE_DYNAMO_BACKEND=%s", upper);
}
