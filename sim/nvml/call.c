/* The frame of every call: initialised or not, state, injected delay and error, handle, lost GPU. One call at a time, as in the driver. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sim.h"

enum { MAX_HANDLES = 256 };
static char handles[MAX_HANDLES][TEXT];                       /* a handle points at its UUID, so it outlives a change of the state */
static int handle_count, users;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

void *handle_of(const char *uuid) {
    for (int i = 0; i < handle_count; i++)
        if (!strcmp(handles[i], uuid)) return handles[i];
    return handle_count == MAX_HANDLES ? NULL : strcpy(handles[handle_count++], uuid);
}

static int is_handle(const void *handle) {
    for (int i = 0; i < handle_count; i++)
        if (handle == handles[i]) return 1;
    return 0;
}

static void find_device(struct call *call, const char *uuid) {
    for (int i = 0; i < call->state->gpus; i++) {
        struct gpu *gpu = &call->state->gpu[i];
        if (!strcmp(gpu->uuid, uuid)) call->gpu = gpu;
        for (int j = 0; j < gpu->migs; j++)
            if (!strcmp(gpu->mig[j].uuid, uuid)) call->gpu = gpu, call->mig = &gpu->mig[j];
    }
    if (!call->gpu) call->error = NVML_GPU_IS_LOST;           /* it had a handle once: it left the bus */
}

static int concerns(const struct fault *fault, const char *function, int gpu) {
    size_t length = strlen(fault->function);
    int matches = length && fault->function[length - 1] == '*' ? !strncmp(fault->function, function, length - 1) : !strcmp(fault->function, function);
    return matches && fault->times != 0 && (fault->gpu < 0 || fault->gpu == gpu);
}

static void suffer_faults(struct call *call, const char *function) {
    int gpu = call->gpu ? (int)(call->gpu - call->state->gpu) : -1;
    for (int i = 0; i < call->state->faults; i++) {
        struct fault *fault = &call->state->fault[i];
        if (!concerns(fault, function, gpu)) continue;
        if (fault->times > 0) fault->times--;
        struct timespec pause = {fault->delay_ms / 1000, fault->delay_ms % 1000 * 1000000};
        while (fault->delay_ms && nanosleep(&pause, &pause) && errno == EINTR) continue;
        if (fault->error && !call->error) call->error = fault->error;
    }
}

struct call enter(const char *function, enum need need, void *handle) {
    struct call call = {0};
    pthread_mutex_lock(&one_at_a_time);
    call.error = users ? current_state(&call.state) : NVML_UNINITIALIZED;
    if (call.error) return call;
    if (need != NEED_NOTHING) {
        if (!is_handle(handle)) call.error = NVML_INVALID_ARGUMENT;
        else find_device(&call, handle);
    }
    if (!call.error && function) suffer_faults(&call, function);
    if (!call.error && (need == NEED_DEVICE || need == NEED_WHOLE_GPU)) call.error = (nvml_return)call.gpu->lost;
    if (!call.error && need == NEED_WHOLE_GPU && call.mig) call.error = NVML_INVALID_ARGUMENT;
    return call;
}

void leave(struct call *call) {
    (void)call;
    pthread_mutex_unlock(&one_at_a_time);
}

nvml_return start(const char *function) {
    struct call call __attribute__((cleanup(leave))) = {0};
    pthread_mutex_lock(&one_at_a_time);
    call.error = current_state(&call.state);
    if (!call.error) suffer_faults(&call, function);
    if (!call.error) users++;
    return call.error;
}

nvml_return finish(void) {
    struct call call __attribute__((cleanup(leave))) = {0};
    pthread_mutex_lock(&one_at_a_time);
    if (!users) return NVML_UNINITIALIZED;
    users--;
    return NVML_SUCCESS;
}

nvml_return copy_text(const char *text, char *to, unsigned size) {
    if (!to) return NVML_INVALID_ARGUMENT;
    if (strlen(text) >= size) return NVML_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}
