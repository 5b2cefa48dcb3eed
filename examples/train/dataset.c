/* SPDX-License-Identifier: Apache-2.0 */
/* See dataset.h. The file is small. One rank reads all of it and sends it to the other ranks. */
#include "dataset.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELD_OUT_EVERY 5
#define IMAGES_MAX 100000

struct reader {
    const char *path;
    size_t line;
    size_t count, room;
    unsigned char *rows; /* DIGIT_PIXELS + 1 bytes each: the pixels, then the label */
};

static int reader_fail(const struct reader *reader, const char *cause)
{
    fprintf(stderr, "train: %s, line %zu: %s\n", reader->path, reader->line, cause);
    return -1;
}

/* Reads one number of a line. Moves `*text` behind the comma that follows, or to the line end. */
static int parse_field(char **text, long max, unsigned char *out)
{
    char *end;
    long value = strtol(*text, &end, 10);
    if (end == *text || value < 0 || value > max)
        return -1;
    if (*end != ',' && *end != '\n' && *end != '\r' && *end != '\0')
        return -1;
    *out = (unsigned char)value;
    *text = *end == ',' ? end + 1 : end;
    return 0;
}

static int reader_line(struct reader *reader, char *text)
{
    if (reader->count >= IMAGES_MAX)
        return reader_fail(reader, "the file has too many images for this program");
    if (reader->count == reader->room) {
        size_t room = reader->room > 0 ? reader->room * 2 : 2048;
        unsigned char *rows = realloc(reader->rows, room * (DIGIT_PIXELS + 1));
        if (rows == NULL)
            return reader_fail(reader, "out of memory");
        reader->rows = rows;
        reader->room = room;
    }
    unsigned char *row = reader->rows + reader->count * (DIGIT_PIXELS + 1);
    for (int i = 0; i < DIGIT_PIXELS; i++)
        if (parse_field(&text, 16, &row[i]) < 0)
            return reader_fail(reader, "expected 64 numbers from 0 to 16 and a digit");
    if (parse_field(&text, DIGIT_CLASSES - 1, &row[DIGIT_PIXELS]) < 0 ||
        text[strspn(text, "\r\n")] != '\0')
        return reader_fail(reader, "expected a digit from 0 to 9 at the end");
    reader->count++;
    return 0;
}

static bool held_out(size_t index)
{
    return index % HELD_OUT_EVERY == HELD_OUT_EVERY - 1;
}

/* Puts the training images in front of the held-out ones. */
static int split(struct dataset *data, const struct reader *reader)
{
    size_t count = reader->count;
    data->test_count = count / HELD_OUT_EVERY;
    data->train_count = count - data->test_count;
    data->pixels = malloc(count * DIGIT_PIXELS);
    data->labels = malloc(count);
    if (data->pixels == NULL || data->labels == NULL)
        return reader_fail(reader, "out of memory");
    size_t train = 0, test = data->train_count;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *row = reader->rows + i * (DIGIT_PIXELS + 1);
        size_t to = held_out(i) ? test++ : train++;
        memcpy(data->pixels + to * DIGIT_PIXELS, row, DIGIT_PIXELS);
        data->labels[to] = row[DIGIT_PIXELS];
    }
    return 0;
}

int dataset_load(struct dataset *data, const char *path)
{
    *data = (struct dataset){0};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "train: cannot read the digits from %s: %s\n", path, strerror(errno));
        return -1;
    }
    struct reader reader = {.path = path};
    char text[1024];
    int rc = 0;
    while (rc == 0 && fgets(text, sizeof text, file) != NULL) {
        reader.line++;
        rc = reader_line(&reader, text);
    }
    if (rc == 0 && ferror(file))
        rc = reader_fail(&reader, "cannot read the rest of the file");
    if (rc == 0 && reader.count < HELD_OUT_EVERY)
        rc = reader_fail(&reader, "the file has too few images for training");
    if (rc == 0)
        rc = split(data, &reader);
    if (rc < 0)
        dataset_destroy(data);
    free(reader.rows);
    fclose(file);
    return rc;
}

void dataset_destroy(struct dataset *data)
{
    free(data->pixels);
    free(data->labels);
    *data = (struct dataset){0};
}

static char *readable(const char *folder, const char *name)
{
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = malloc(room);
    if (path == NULL)
        return NULL;
    snprintf(path, room, "%s/%s", folder, name);
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *dataset_find(void)
{
    char folder[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length > 0) {
        folder[length] = '\0';
        do {
            dirname(folder); /* shortens `folder` in place */
            char *path = readable(folder, "examples/data/digits.csv");
            if (path == NULL)
                path = readable(folder, "digits.csv");
            if (path != NULL)
                return path;
        } while (strcmp(folder, "/") != 0 && strcmp(folder, ".") != 0);
    }
    return readable(EXAMPLE_DATA_DIR, "digits.csv");
}

const unsigned char *dataset_image(const struct dataset *data, size_t index)
{
    return data->pixels + index * DIGIT_PIXELS;
}
