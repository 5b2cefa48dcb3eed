/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun kubernetes`: its command line, and a secret. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "base/text.h"
#include "cli/features.h"
#include "features/kubernetes/kubernetes.h"
#include "model/settings/suggest.h"

const char kubernetes_feature[] = "manifests that run a job on Kubernetes";

/* clang-format off */
#define KUBE_OPTION_LIST(X)                                                                        \
    X(KIND,      "--kind",        "KIND",      "job (default), jobset, mpijob or trainjob")        \
    X(IMAGE,     "--image",       "IMAGE",     "The image of the pods, with hvdrun in it")         \
    X(PODS,      "--pods",        "N|MIN:MAX", "How many pods; MIN:MAX makes the job elastic (1)") \
    X(SLOTS,     "--slots",       "N",         "How many ranks fit in a pod (its GPUs, or 1)")     \
    X(GPUS,      "--gpus",        "N",         "GPUs of each pod, as nvidia.com/gpu (0)")          \
    X(NAME,      "--name",        "NAME",      "The name of all objects (train)")                  \
    X(NAMESPACE, "--namespace",   "NAMESPACE", "Their namespace (that of kubectl)")                \
    X(GRACE,     "--grace",       "TIME",      "How long ranks may take to exit after SIGTERM (30s)") \
    X(SECRET,    "--with-secret", "",          "Also print a new secret")                          \
    X(HELP,      "--help",        "",          "Print this help")
/* clang-format on */

enum kube_option {
#define KUBE_ENUM(name, word, value, help) KUBE_##name,
    KUBE_OPTION_LIST(KUBE_ENUM)
#undef KUBE_ENUM
        KUBE_OPTIONS
};

static const struct {
    const char *word, *value, *help;
} forms[] = {
#define KUBE_FORM(name, word, value, help) {word, value, help},
    KUBE_OPTION_LIST(KUBE_FORM)
#undef KUBE_FORM
};

#define GPUS_MAX 1024
#define SLOTS_MAX 100000
#define GRACE_MAX_MS (INT64_C(7) * 86400 * 1000)

static int wrong(enum kube_option option, struct error *err)
{
    return error_wrap_usage(err, "%s", forms[option].word);
}

static int take_kind(const char *value, struct manifest *manifest, struct error *err)
{
    for (int i = 0; i < MANIFEST_KINDS; i++) {
        if (strcmp(value, manifest_kinds[i]) == 0) {
            manifest->kind = (enum manifest_kind)i;
            return 0;
        }
    }
    error_set(err, "'%s' is not a kind; expected job, jobset, mpijob or trainjob", value);
    return wrong(KUBE_KIND, err);
}

/* "3" or "2:4" */
static int take_pods(const char *value, struct manifest *manifest, struct error *err)
{
    const char *colon = strchr(value, ':');
    char *least AUTO_FREE =
        colon == NULL ? mem_strdup(value) : mem_strndup(value, (size_t)(colon - value));
    const char *most = colon == NULL ? value : colon + 1;
    int64_t min = 0, max = 0;
    if (parse_int(least, 1, MANIFEST_PODS_MAX, &min, err) < 0 ||
        parse_int(most, 1, MANIFEST_PODS_MAX, &max, err) < 0)
        return wrong(KUBE_PODS, err);
    if (min > max) {
        error_set(err, "'%s' has more pods at least than at most; expected MIN:MAX", value);
        return wrong(KUBE_PODS, err);
    }
    manifest->pods_min = min;
    manifest->pods_max = max;
    manifest->is_elastic = colon != NULL;
    return 0;
}

static int take_grace(const char *value, struct manifest *manifest, struct error *err)
{
    int64_t grace_ms = 0;
    if (parse_duration_ms(value, &grace_ms, err) < 0)
        return wrong(KUBE_GRACE, err);
    if (grace_ms <= 0 || grace_ms > GRACE_MAX_MS) { /* HVDRUN_DIAL_GRACE=0 would mean "not known" */
        error_set(err, grace_ms <= 0 ? "'%s' is not longer than 0" : "'%s' is longer than 7 days",
                  value);
        return wrong(KUBE_GRACE, err);
    }
    manifest->grace_s = (grace_ms + 999) / 1000;
    manifest->has_grace = true;
    return 0;
}

static int take(enum kube_option option, const char *value, struct kube_words *out,
                struct error *err)
{
    struct manifest *manifest = &out->manifest;
    int result = 0;
    switch (option) {
    case KUBE_KIND: return take_kind(value, manifest, err);
    case KUBE_IMAGE: manifest->image = value; break;
    case KUBE_PODS: return take_pods(value, manifest, err);
    case KUBE_SLOTS: result = parse_int(value, 1, SLOTS_MAX, &manifest->slots, err); break;
    case KUBE_GPUS: result = parse_int(value, 0, GPUS_MAX, &manifest->gpus, err); break;
    case KUBE_NAME: manifest->name = value; break;
    case KUBE_NAMESPACE: manifest->namespace = value; break;
    case KUBE_GRACE: return take_grace(value, manifest, err);
    case KUBE_SECRET: out->with_secret = true; break;
    case KUBE_HELP: out->help = true; break;
    case KUBE_OPTIONS: break;
    }
    return result < 0 ? wrong(option, err) : 0;
}

static int unknown(const char *word, size_t length, struct error *err)
{
    struct buf near AUTO_BUF = BUF_INIT(256);
    struct suggest suggest;
    suggest_init(&suggest, word, length);
    for (int i = 0; i < KUBE_OPTIONS; i++)
        suggest_offer(&suggest, forms[i].word);
    suggest_append(&suggest, &near);
    return error_usage(err,
                       "hvdrun kubernetes does not have the option '%.*s'%s; options of the job "
                       "follow '--'",
                       (int)length, word, buf_text(&near));
}

/* Takes the option at **words, and moves *words to its last word. */
static int take_option(char *const **words, struct kube_words *out, struct error *err)
{
    const char *word = **words, *value = "";
    size_t length = strcspn(word, "=");
    int option = 0;
    while (option < KUBE_OPTIONS &&
           (strlen(forms[option].word) != length || strncmp(forms[option].word, word, length) != 0))
        option++;
    if (option == KUBE_OPTIONS && strcmp(word, "-h") != 0)
        return unknown(word, length, err);
    if (option == KUBE_OPTIONS)
        option = KUBE_HELP;
    bool wants = forms[option].value[0] != '\0';
    if (word[length] == '=' && wants)
        value = word + length + 1;
    else if (word[length] != '=' && wants && (*words)[1] != NULL)
        value = *++*words;
    else if (word[length] == '=' || wants)
        return error_usage(err, "%s %s value", forms[option].word, wants ? "needs a" : "takes no");
    return take((enum kube_option)option, value, out, err);
}

static int read_words(char *const *words, struct kube_words *out, struct error *err)
{
    struct manifest *manifest = &out->manifest;
    *out = (struct kube_words){
        .manifest = {.name = "train", .pods_min = 1, .pods_max = 1, .grace_s = 30}};
    for (; *words != NULL && (*words)[0] == '-'; words++) {
        if (strcmp(*words, "--") == 0) {
            words++;
            break;
        }
        if (take_option(&words, out, err) < 0)
            return -1;
    }
    manifest->line = words;
    if (manifest->slots == 0)
        manifest->slots = manifest->gpus > 0 ? manifest->gpus : 1;
    if (out->help)
        return 0;
    if (manifest->image == NULL)
        return error_usage(err, "hvdrun kubernetes needs --image IMAGE");
    if (words[0] == NULL || words[0][0] == '\0')
        return error_usage(err, "hvdrun kubernetes needs the program that the pods run: hvdrun "
                                "kubernetes --image IMAGE PROGRAM [ARGUMENT...]");
    return manifest_check(manifest, err);
}

int kube_words_read(char *const *words, struct kube_words *out, struct error *err)
{
    int result = read_words(words, out, err);
    if (result < 0 && err != NULL) { /* it may have any bytes of the user */
        plain_valid(err->text, strlen(err->text));
        plain_line(err->text, '?');
    }
    return result;
}

static void kube_words_help(struct buf *out)
{
    buf_puts(out,
             "Usage: hvdrun kubernetes [OPTIONS] [--] PROGRAM [ARGUMENT...]\n"
             "Prints the manifests of a job for 'kubectl apply -f -'. What has no option here, "
             "you\ncan change in the text. After --, options of hvdrun may come before the "
             "program.\n\n");
    for (int i = 0; i < KUBE_OPTIONS; i++) {
        char *head AUTO_FREE = mem_printf("%s%s%s", forms[i].word,
                                          forms[i].value[0] != '\0' ? " " : "", forms[i].value);
        buf_printf(out, "  %-25s %s\n", head, forms[i].help);
    }
    buf_puts(out, "\nTIME is in seconds, or 250ms, 5m, 2h.\n"
                  "Exit status: 0; 2 for an error in the command line.\n");
}

#define SECRET_SIZE 32

static int make_secret(char text[2 * SECRET_SIZE + 1], struct error *err)
{
    unsigned char bytes[SECRET_SIZE];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_errno(err, errno, "cannot make a secret");
    text_hex(bytes, sizeof(bytes), text);
    explicit_bzero(bytes, sizeof(bytes));
    return 0;
}

int kubernetes_run(char *const *words, struct buf *out, struct error *err)
{
    struct kube_words read;
    char secret[2 * SECRET_SIZE + 1];
    if (kube_words_read(words, &read, err) < 0)
        return -1;
    if (read.help) {
        kube_words_help(out);
        return 0;
    }
    if (read.with_secret && make_secret(secret, err) < 0)
        return -1;
    read.manifest.secret = read.with_secret ? secret : NULL;
    if (manifest_check(&read.manifest, err) < 0)
        return -1;
    manifest_put(&read.manifest, out);
    return 0;
}
