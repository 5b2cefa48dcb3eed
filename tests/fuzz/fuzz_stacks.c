/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a Python process, as an image (stack_image.h); otherwise the text of /proc/PID/maps
 * and an ELF file.
 */
#include "base/buf.h"
#include "fuzz.h"
#include "stack_image.h"
#include "stacks/python.h"
#include "stacks/runtime.h"
#include "stacks/runtime_test.h"
#include "stacks/tree.h"

#define BUDGET ((size_t)1 << 20)
#define THREADS_SHOWN 8

static void check_text(const char *text)
{
    for (; *text != '\0'; text++)
        FUZZ_CHECK((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void show(const struct python_stack *stack, int rank, struct stack_tree *tree)
{
    struct stack_frame *frames = mem_array(stack->count + 1, sizeof(*frames));
    FUZZ_CHECK(stack->count <= PYTHON_FRAMES_MAX);
    for (size_t i = 0; i < stack->count; i++) {
        const struct stack_frame *frame = &stack->frames[stack->count - 1 - i];
        check_text(frame->function);
        check_text(frame->file);
        FUZZ_CHECK(frame->line >= 0);
        frames[i] = (struct stack_frame){frame->function, frame->file, frame->line, false};
    }
    stack_tree_add(tree, &(struct stack){.rank = rank,
                                         .role = (enum stack_role)(rank % STACK_ROLES),
                                         .doing = rank % 2 == 0 ? "running" : "",
                                         .frames = frames,
                                         .count = stack->count,
                                         .trouble = ""});
    free(frames);
}

static void check_tree(struct stack_tree *tree)
{
    struct buf text = BUF_INIT((size_t)1 << 24);
    int lines = 0;
    stack_tree_text(tree, &text);
    for (const char *at = buf_text(&text); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    FUZZ_CHECK(lines <= STACK_TREE_LINES + 4);
    buf_destroy(&text);
}

static void read_image(struct image *image)
{
    struct memory memory = {image_read, image, BUDGET};
    struct python python;
    struct python_thread *threads = NULL;
    struct stack_tree *tree = stack_tree_create();
    size_t count = 0;
    if (python_init(&python, &memory, image->runtime, image->minor) == 0 &&
        python_threads(&python, &threads, &count) == 0) {
        FUZZ_CHECK(count <= PYTHON_THREADS_MAX);
        for (size_t i = 0; i < count && i < THREADS_SHOWN; i++) {
            struct python_stack stack;
            if (python_stack_read(&python, &threads[i], &stack) == 0)
                show(&stack, (int)i, tree);
            python_stack_destroy(&stack);
        }
    }
    check_tree(tree);
    stack_tree_destroy(tree);
    free(threads);
    python_destroy(&python);
}

struct bytes {
    const uint8_t *at;
    size_t length;
};

static size_t read_bytes(void *context, uint64_t offset, void *out, size_t length)
{
    const struct bytes *bytes = context;
    if (offset >= bytes->length)
        return 0;
    size_t left = bytes->length - (size_t)offset, got = length < left ? length : left;
    memcpy(out, bytes->at + offset, got);
    return got;
}

static void read_files(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct bytes bytes = {data, size};
    struct mapped_files files;
    struct symbols symbols;
    uint64_t bias = 0;
    mapped_files_read(text, "/usr/bin/python3.11", &files);
    FUZZ_CHECK(files.count <= MAPPED_FILES_MAX);
    (void)symbols_read(&(struct elf_source){.read = read_bytes, .context = &bytes}, &symbols);
    for (size_t i = 0; i < files.count; i++) {
        FUZZ_CHECK(files.items[i].end > files.items[i].start);
        FUZZ_CHECK(mapped_minor_version(files.items[i].path) < 100);
        (void)symbols_bias(&symbols, files.items[i].offset, files.items[i].start, &bias);
    }
    mapped_files_destroy(&files);
    free(text);
}

FUZZ_TARGET
{
    struct image image;
    if (image_parse(data, size, &image) == 0)
        read_image(&image);
    else
        read_files(data, size);
    image_destroy(&image);
    return 0;
}
