/* Library, driver and host: what needs no GPU. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

EXPORT nvml_return nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return start(__func__);
}

EXPORT nvml_return nvmlShutdown(void) {
    return finish();
}

EXPORT const char *nvmlErrorString(nvml_return result) {
    static const char *const WORDS[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions", "Already Initialized", "Not Found",
        "Insufficient Size", "Insufficient External Power", "Driver Not Loaded", "Timeout", "Interrupt Request Issue",
        "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost", "GPU requires restart",
        "The operating system has blocked the request.", "RM has detected an NVML/RM version mismatch.", "In use by another client",
        "Insufficient Memory", "No data", "ECC not supported with vGPU", "Insufficient resources", "Frequency not supported", "Argument version mismatch",
    };
    return result >= 0 && (size_t)result < sizeof WORDS / sizeof *WORDS ? WORDS[result] : "Unknown Error";
}

EXPORT nvml_return nvmlSystemGetDriverVersion(char *to, unsigned size) {
    CALL_SYSTEM();
    return copy_text(call.state->driver, to, size);
}

EXPORT nvml_return nvmlSystemGetNVMLVersion(char *to, unsigned size) {
    CALL_SYSTEM();
    return copy_text(call.state->nvml, to, size);
}

EXPORT nvml_return nvmlSystemGetCudaDriverVersion_v2(int *version) {
    CALL_SYSTEM();
    *version = (int)call.state->cuda;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlSystemGetProcessName(unsigned pid, char *to, unsigned size) {
    char path[64], command[1024];
    CALL_SYSTEM();
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return NVML_NOT_FOUND;
    ssize_t length = read(descriptor, command, sizeof command - 1);
    close(descriptor);
    if (length < 0) return NVML_NOT_FOUND;
    command[length] = 0;                                      /* the first argument ends at its own zero */
    return copy_text(command, to, size);
}

EXPORT nvml_return nvmlEventSetCreate(void **set) {
    CALL_SYSTEM();
    *set = calloc(1, 1);
    return *set ? NVML_SUCCESS : NVML_NO_MEMORY;
}

EXPORT nvml_return nvmlEventSetFree(void *set) {
    CALL_SYSTEM();
    free(set);
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set) {
    CALL(device);
    (void)types;
    return set ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
}

/* There are no events in here: the wait always runs out. */
EXPORT nvml_return nvmlEventSetWait_v2(void *set, struct event_data *data, unsigned timeout_ms) {
    {
        CALL_SYSTEM();                                        /* the wait itself must not keep other calls out */
    }
    if (!set || !data) return NVML_INVALID_ARGUMENT;
    struct timespec pause = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    while (nanosleep(&pause, &pause) && errno == EINTR) continue;
    return NVML_TIMEOUT;
}
