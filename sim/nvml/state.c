/* The state file: lines of `key value`; a line `gpu UUID` opens a GPU, and what follows belongs to it.
 * Written by sim/node/state.py, which documents each key. A file that cannot be understood is a broken driver (999), said once on stderr. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim.h"

enum { MAX_STATE_BYTES = 1 << 18 };

struct number_key { const char *key; size_t offset; };
static const struct number_key GPU_NUMBERS[] = {
#define NUMBER(field) {#field, offsetof(struct gpu, field)}
    NUMBER(minor), NUMBER(total), NUMBER(reserved), NUMBER(baseline), NUMBER(ghost), NUMBER(latch_utilisation), NUMBER(latch_sm),
    NUMBER(architecture), NUMBER(compute_major), NUMBER(compute_minor), NUMBER(power_idle_mw), NUMBER(power_limit_mw),
    NUMBER(energy_mj), NUMBER(temperature), NUMBER(sm_clock_mhz), NUMBER(persistence), NUMBER(lost), NUMBER(gpm),
    NUMBER(accounting), NUMBER(process_memory), NUMBER(layout), NUMBER(grow), NUMBER(grow_times),
};
static const struct gpu ORDINARY_GPU = {
    .latch_utilisation = -1, .latch_sm = -1, .energy_mj = -1, .process_memory = 1, .layout = 24, .grow_times = -1,
};

const char *sim_folder(void) {
    const char *folder = getenv("GPU_SIM_DIR");
    return folder && *folder ? folder : "/var/lib/gpu-sim";
}

static int read_numbers(char *text, int wanted, long long *out) {
    int found = 0;
    for (char *end; found < wanted; found++, text = end) {
        errno = 0;
        out[found] = strtoll(text, &end, 10);
        if (end == text || errno) break;
    }
    return found;
}

static int read_text(char *to, const char *value) {
    if (strlen(value) >= TEXT) return 0;
    strcpy(to, value);
    return 1;
}

static int read_fault(struct state *state, char *value, int is_delay) {
    if (state->faults == MAX_FAULTS) return 0;
    struct fault *fault = &state->fault[state->faults];
    char *rest = strchr(value, ' ');
    long long numbers[2] = {0, -1};
    if (!rest) return 0;
    *rest++ = 0;
    if (!read_numbers(rest, 2, numbers) || !read_text(fault->function, value)) return 0;
    if (is_delay) fault->delay_ms = numbers[0];
    else fault->error = (nvml_return)numbers[0];
    fault->times = numbers[1];
    fault->gpu = state->gpus - 1;
    state->faults++;
    return 1;
}

static int read_mig(struct gpu *gpu, char *value) {
    long long numbers[3];
    char *rest = strchr(value, ' ');
    if (!rest || gpu->migs == MAX_MIG) return 0;
    *rest++ = 0;
    struct mig *mig = &gpu->mig[gpu->migs];
    if (read_numbers(rest, 3, numbers) != 3 || !read_text(mig->uuid, value)) return 0;
    mig->gpu_instance = (unsigned)numbers[0], mig->compute_instance = (unsigned)numbers[1], mig->total = (uint64_t)numbers[2];
    gpu->migs++;
    return 1;
}

static int read_process(struct gpu *gpu, char *value) {
    long long numbers[4];                                     /* pid, bytes (negative: not available), GPU and compute instance (-1: none) */
    if (gpu->scripted == MAX_SCRIPTED || !strchr("CGM", value[0]) || read_numbers(value + 1, 4, numbers) != 4) return 0;
    gpu->script[gpu->scripted++] = (struct scripted){
        value[0], (unsigned)numbers[0], numbers[1] < 0 ? NOT_AVAILABLE_BYTES : (uint64_t)numbers[1], (unsigned)numbers[2], (unsigned)numbers[3]};
    return 1;
}

static int read_accounted(struct gpu *gpu, char *value) {
    long long numbers[6];
    if (gpu->accounted == MAX_ACCOUNTED || read_numbers(value, 6, numbers) != 6) return 0;
    gpu->account[gpu->accounted++] = (struct accounted){(unsigned)numbers[0], (unsigned)numbers[1], (unsigned)numbers[2],
                                                        (uint64_t)numbers[3], (uint64_t)numbers[4], (uint64_t)numbers[5]};
    return 1;
}

static int read_gpu_line(struct gpu *gpu, const char *key, char *value) {
    if (!strcmp(key, "name")) return read_text(gpu->name, value);
    if (!strcmp(key, "serial")) return read_text(gpu->serial, value);
    if (!strcmp(key, "pci")) return read_text(gpu->pci, value);
    if (!strcmp(key, "mig")) return read_mig(gpu, value);
    if (!strcmp(key, "process")) return read_process(gpu, value);
    if (!strcmp(key, "accounted")) return read_accounted(gpu, value);
    for (size_t i = 0; i < sizeof GPU_NUMBERS / sizeof *GPU_NUMBERS; i++)
        if (!strcmp(key, GPU_NUMBERS[i].key)) return read_numbers(value, 1, (long long *)((char *)gpu + GPU_NUMBERS[i].offset)) == 1;
    return 0;
}

static int read_line(struct state *state, char *line) {
    char *value = strchr(line, ' ');
    if (!*line || *line == '#') return 1;
    if (!value) return 0;
    *value++ = 0;
    if (!strcmp(line, "error") || !strcmp(line, "delay")) return read_fault(state, value, *line == 'd');
    if (!strcmp(line, "gpu")) {
        if (state->gpus == MAX_GPUS) return 0;
        state->gpu[state->gpus] = ORDINARY_GPU;
        return read_text(state->gpu[state->gpus++].uuid, value);
    }
    if (state->gpus) return read_gpu_line(&state->gpu[state->gpus - 1], line, value);
    if (!strcmp(line, "driver")) return read_text(state->driver, value);
    if (!strcmp(line, "nvml")) return read_text(state->nvml, value);
    if (!strcmp(line, "cuda")) return read_numbers(value, 1, &state->cuda) == 1;
    return 0;
}

static nvml_return parse(struct state *state, char *text, const char *path) {
    int number = 0;
    memset(state, 0, sizeof *state);
    for (char *line; (line = strsep(&text, "\n"));) {
        number++;
        if (read_line(state, line)) continue;
        fprintf(stderr, "gpu-sim: %s line %d cannot be understood; write the file with sim/node/state.py\n", path, number);
        return NVML_UNKNOWN;
    }
    return NVML_SUCCESS;
}

static nvml_return load(int descriptor, struct state *state, const char *path) {
    static char text[MAX_STATE_BYTES];
    size_t length = 0;
    for (ssize_t got; (got = read(descriptor, text + length, sizeof text - 1 - length)) != 0; length += (size_t)got)
        if (got < 0 || length == sizeof text - 1) return NVML_UNKNOWN;
    text[length] = 0;
    return parse(state, text, path);
}

nvml_return current_state(struct state **state) {
    static struct state known;
    static struct stat seen;
    static nvml_return result = NVML_DRIVER_NOT_LOADED;
    char path[4096];
    struct stat now;
    snprintf(path, sizeof path, "%s/state", sim_folder());
    *state = &known;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &now)) {
        if (descriptor >= 0) close(descriptor);
        memset(&seen, 0, sizeof seen);
        return NVML_DRIVER_NOT_LOADED;
    }
    int same = now.st_ino == seen.st_ino && now.st_dev == seen.st_dev && now.st_size == seen.st_size &&
               now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec;
    if (!same) {
        result = load(descriptor, &known, path);
        seen = now;
    }
    close(descriptor);
    return result;
}
