/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so.1 for machines without a GPU. It reads the file that FAKE_NVML names at each
 * call, so a test can change what the GPUs do. Lines of it:
 *
 *   gpu INDEX KEY VALUE        KEY: uuid, name, use, memory_use, power, total, used, energy, pci,
 *                              temperature, reasons, ecc_TYPE_COUNTER (both 0 or 1),
 *                              remapped (CORRECTED,UNCORRECTED,PENDING,FAILED), links and
 *                              links_up (of NVLink)
 *   process INDEX PID BYTES    -1: not known
 *   fail SYMBOL RESULT         the function returns this
 *   slow SYMBOL MILLISECONDS   the function takes so long
 *
 * A key that is not there is not supported. With FAKE_NVML_OLD it lacks functions, as an older
 * driver does.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE_BYTES 256
#define PLACES 64
#define WORDS 4
#define SUCCESS 0
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define INSUFFICIENT_SIZE 7
#define EXPORT __attribute__((visibility("default")))

struct utilization {
    unsigned gpu, memory;
};

struct memory {
    unsigned long long total, free, used;
};

struct pci {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char text[32];
};

struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned instance, compute_instance;
};

struct words {
    char list[WORDS][LINE_BYTES];
    int count;
};

static void split(const char *line, struct words *out)
{
    *out = (struct words){.count = 0};
    for (line += strspn(line, " \n"); *line != '\0' && out->count < WORDS;) {
        size_t length = strcspn(line, " \n");
        memcpy(out->list[out->count++], line, length);
        line += length;
        line += strspn(line, " \n");
    }
}

static unsigned long long value_of(const char *word)
{
    return strtoull(word, NULL, 10);
}

/* Calls `each` for every line until it says that it has found something. */
static bool each_line(bool (*each)(const struct words *words, void *context), void *context)
{
    const char *path = getenv("FAKE_NVML");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char line[LINE_BYTES];
    struct words words;
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        split(line, &words);
        found = each(&words, context);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

struct wanted {
    const char *word, *name;
    unsigned index;
    char value[LINE_BYTES];
};

static bool is_fault(const struct words *words, void *context)
{
    struct wanted *wanted = context;
    memcpy(wanted->value, words->list[2], sizeof(wanted->value));
    return words->count == 3 && strcmp(words->list[0], wanted->word) == 0 &&
           strcmp(words->list[1], wanted->name) == 0;
}

/* What every function does first. */
static int enter(const char *symbol)
{
    struct wanted slow = {.word = "slow", .name = symbol}, fail = {.word = "fail", .name = symbol};
    if (each_line(is_fault, &slow)) {
        long milliseconds = strtol(slow.value, NULL, 10);
        const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
        nanosleep(&time, NULL);
    }
    return each_line(is_fault, &fail) ? (int)strtol(fail.value, NULL, 10) : SUCCESS;
}

static bool is_key(const struct words *words, void *context)
{
    struct wanted *wanted = context;
    memcpy(wanted->value, words->list[3], sizeof(wanted->value));
    return words->count == 4 && strcmp(words->list[0], "gpu") == 0 &&
           value_of(words->list[1]) == wanted->index && strcmp(words->list[2], wanted->name) == 0;
}

static int places[PLACES]; /* a device is a pointer to its place */

static unsigned index_of(const void *device)
{
    return (unsigned)((const int *)device - places);
}

/* The value of a key, after `symbol` has had its say. */
static int number(const char *symbol, const void *device, const char *key, unsigned long long *out)
{
    struct wanted wanted = {.name = key, .index = index_of(device)};
    int result = enter(symbol);
    if (result != SUCCESS)
        return result;
    if (!each_line(is_key, &wanted))
        return NOT_SUPPORTED;
    *out = strtoull(wanted.value, NULL, 10);
    return SUCCESS;
}

static bool count_gpu(const struct words *words, void *context)
{
    unsigned *count = context;
    unsigned long long index = value_of(words->list[1]);
    if (strcmp(words->list[0], "gpu") == 0 && index < PLACES && index + 1 > *count)
        *count = (unsigned)index + 1;
    return false;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
    return enter(__func__);
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 0;
    each_line(count_gpu, count);
    return enter(__func__);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    if (index >= PLACES)
        return INVALID_ARGUMENT;
    *device = &places[index];
    return enter(__func__);
}

static int text_of(const char *symbol, const void *device, const char *key, char *text,
                   unsigned size)
{
    struct wanted wanted = {.name = key, .index = index_of(device)};
    int result = enter(symbol);
    if (result == SUCCESS && !each_line(is_key, &wanted))
        result = NOT_SUPPORTED;
    if (result == SUCCESS)
        snprintf(text, size, "%s", wanted.value);
    return result;
}

EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned size);
EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    return text_of(__func__, device, "uuid", text, size);
}

EXPORT int nvmlDeviceGetName(void *device, char *text, unsigned size);
EXPORT int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
    return text_of(__func__, device, "name", text, size);
}

EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *is_up);
EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *is_up)
{
    unsigned long long links = 0, up = 0;
    int result = number(__func__, device, "links", &links);
    if (result == SUCCESS && number("", device, "links_up", &up) != SUCCESS)
        up = links;
    *is_up = link < up;
    return result == SUCCESS && link >= links ? INVALID_ARGUMENT : result;
}

EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct pci *out);
EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct pci *out)
{
    struct wanted wanted = {.name = "pci", .index = index_of(device)};
    int result = enter(__func__);
    if (result == SUCCESS && !each_line(is_key, &wanted))
        result = NOT_SUPPORTED;
    *out = (struct pci){.legacy = "0000:00:00.0"};
    if (result == SUCCESS)
        snprintf(out->text, sizeof(out->text), "%.31s", wanted.value);
    return result;
}

EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    unsigned long long temperature = 0;
    int result =
        sensor != 0 ? INVALID_ARGUMENT : number(__func__, device, "temperature", &temperature);
    *celsius = (unsigned)temperature;
    return result;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    return number(__func__, device, "reasons", reasons);
}

EXPORT int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter,
                                       unsigned long long *count);
EXPORT int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter,
                                       unsigned long long *count)
{
    char key[LINE_BYTES];
    snprintf(key, sizeof(key), "ecc_%d_%d", type, counter);
    return number(__func__, device, key, count);
}

EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out)
{
    unsigned long long use = 0, memory = 0;
    int result = number(__func__, device, "use", &use);
    if (result == SUCCESS && number("", device, "memory_use", &memory) != SUCCESS)
        memory = 0;
    *out = (struct utilization){(unsigned)use, (unsigned)memory};
    return result;
}

EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    unsigned long long power = 0;
    int result = number(__func__, device, "power", &power);
    *milliwatts = (unsigned)power;
    return result;
}

EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *out);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *out)
{
    int result = number(__func__, device, "total", &out->total);
    if (result == SUCCESS)
        result = number("", device, "used", &out->used);
    out->free = out->total - out->used;
    return result;
}

struct listing {
    unsigned index, count, room;
    struct process *out;
};

static bool add_process(const struct words *words, void *context)
{
    struct listing *listing = context;
    if (words->count != 4 || strcmp(words->list[0], "process") != 0 ||
        value_of(words->list[1]) != listing->index)
        return false;
    if (listing->count < listing->room)
        listing->out[listing->count] = (struct process){
            (unsigned)value_of(words->list[2]), value_of(words->list[3]), UINT32_MAX, UINT32_MAX};
    listing->count++;
    return false;
}

static int list(const char *symbol, const void *device, unsigned *count, struct process *out)
{
    struct listing listing = {.index = index_of(device), .room = *count, .out = out};
    int result = enter(symbol);
    each_line(add_process, &listing);
    *count = listing.count;
    return result == SUCCESS && listing.count > listing.room ? INSUFFICIENT_SIZE : result;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned *count,
                                                   struct process *out);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned *count,
                                                   struct process *out)
{
    return list(__func__, device, count, out);
}

#ifndef FAKE_NVML_OLD
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   struct process *out);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   struct process *out)
{
    return list(__func__, device, count, out);
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    return number(__func__, device, "energy", millijoules);
}

EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons);
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons)
{
    return number(__func__, device, "reasons", reasons);
}

EXPORT int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
                                     unsigned *pending, unsigned *failed);
EXPORT int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
                                     unsigned *pending, unsigned *failed)
{
    struct wanted wanted = {.name = "remapped", .index = index_of(device)};
    unsigned *const out[] = {corrected, uncorrected, pending, failed};
    int result = enter(__func__);
    if (result == SUCCESS && !each_line(is_key, &wanted))
        result = NOT_SUPPORTED;
    const char *text = wanted.value;
    for (int i = 0; result == SUCCESS && i < 4; i++) {
        char *end;
        *out[i] = (unsigned)strtoul(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return result;
}
#endif
