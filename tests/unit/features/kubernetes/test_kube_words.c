/* SPDX-License-Identifier: Apache-2.0 */
/* The command line; tests/flow/test_kubernetes.py has what it prints, and the mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "features/kubernetes/kubernetes.h"

#define WORDS(...) ((char *const[]){__VA_ARGS__, NULL})
#define WORD(text) ((char *)(text))

static void test_defaults(void **state)
{
    struct kube_words words;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(
        kube_words_read(WORDS(WORD("--image"), WORD("i"), WORD("p"), WORD("-x")), &words, &err), 0);
    const struct manifest *manifest = &words.manifest;
    assert_int_equal(manifest->kind, MANIFEST_JOB);
    assert_string_equal(manifest->name, "train");
    assert_null(manifest->namespace);
    assert_int_equal(manifest->pods_min, 1);
    assert_int_equal(manifest->pods_max, 1);
    assert_false(manifest->is_elastic);
    assert_int_equal(manifest->slots, 1);
    assert_int_equal(manifest->grace_s, 30);
    assert_false(manifest->has_grace);
    assert_string_equal(manifest->line[0], "p");
    assert_string_equal(manifest->line[1], "-x");
    assert_null(manifest->line[2]);
}

static void test_options(void **state)
{
    struct kube_words words;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(
        kube_words_read(WORDS(WORD("--image=i=j"), WORD("--kind"), WORD("jobset"),
                              WORD("--pods=2:4"), WORD("--gpus"), WORD("8"), WORD("--slots=16"),
                              WORD("--name"), WORD("n"), WORD("--namespace=ns"), WORD("--grace"),
                              WORD("1500ms"), WORD("--with-secret"), WORD("--"), WORD("-v"),
                              WORD("p")),
                        &words, &err),
        0);
    const struct manifest *manifest = &words.manifest;
    assert_string_equal(manifest->image, "i=j");
    assert_int_equal(manifest->kind, MANIFEST_JOBSET);
    assert_int_equal(manifest->pods_min, 2);
    assert_int_equal(manifest->pods_max, 4);
    assert_true(manifest->is_elastic);
    assert_int_equal(manifest->gpus, 8);
    assert_int_equal(manifest->slots, 16);
    assert_string_equal(manifest->name, "n");
    assert_string_equal(manifest->namespace, "ns");
    assert_int_equal(manifest->grace_s, 2); /* never shorter than the user wants */
    assert_true(manifest->has_grace);
    assert_true(words.with_secret);
    assert_string_equal(manifest->line[0], "-v");
}

static void test_mistakes(void **state)
{
    struct kube_words words;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(
        kube_words_read(WORDS(WORD("--image"), WORD("i"), WORD("--pods"), WORD("3:2"), WORD("p")),
                        &words, &err),
        -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_int_equal(
        kube_words_read(WORDS(WORD("--image"), WORD("i"), WORD("--pods")), &words, &err), -1);
    assert_string_equal(err.text, "--pods needs a value");
    assert_int_equal(kube_words_read(WORDS(WORD("-x")), &words, &err), -1);
    assert_int_equal(kube_words_read(WORDS(WORD("-h")), &words, &err), 0);
    assert_true(words.help);
}

/* The longest name that a pod of each kind may have. */
static void test_names_of_pods(void **state)
{
    char name[64];
    static const struct {
        enum manifest_kind kind;
        int room; /* for "-0", what is between, and the "-xxxxx" of JobSet */
    } kinds[] = {
        {MANIFEST_JOB, 2}, {MANIFEST_JOBSET, 14}, {MANIFEST_MPIJOB, 9}, {MANIFEST_TRAINJOB, 15}};
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct manifest manifest = {.kind = kinds[i].kind,
                                    .name = name,
                                    .image = "i",
                                    .pods_max = 1,
                                    .line = WORDS(WORD("p"))};
        struct error err = ERROR_INIT;
        for (int length = 0; length < 63 - kinds[i].room; length++)
            name[length] = 'a', name[length + 1] = '\0';
        assert_int_equal(manifest_check(&manifest, &err), 0);
        manifest.pods_max = 11; /* one letter more */
        assert_int_equal(manifest_check(&manifest, &err), -1);
        assert_int_equal(err.status, STATUS_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_names_of_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
