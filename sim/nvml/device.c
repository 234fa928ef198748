/* Which GPUs there are and what they are. What the library keeps (handle, UUID, index, minor number) it still tells of a lost GPU. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

enum { ECC_MEMORY_ERRORS = 0, DISABLED = 0 };

EXPORT nvml_return nvmlDeviceGetCount_v2(unsigned *count) {
    CALL_SYSTEM();
    *count = (unsigned)call.state->gpus;
    return NVML_SUCCESS;
}

/* The second half of the three ways to a handle, a call of its own: errors limited to this GPU strike, and each strikes once. */
static nvml_return hand_out(const char *function, void *handle, void **device) {
    struct call call __attribute__((cleanup(leave))) = enter(function, NEED_IDENTITY, handle);
    if (!call.error) *device = handle;
    return call.error;
}

EXPORT nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    void *handle;
    {
        CALL_QUIET();
        if (index >= (unsigned)call.state->gpus) return NVML_INVALID_ARGUMENT;
        handle = handle_of(call.state->gpu[index].uuid);
    }
    return hand_out(__func__, handle, device);
}

EXPORT nvml_return nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    void *handle = NULL;
    {
        CALL_QUIET();
        for (int i = 0; i < call.state->gpus; i++) {
            struct gpu *gpu = &call.state->gpu[i];
            if (!strcmp(gpu->uuid, uuid)) handle = handle_of(gpu->uuid);
            for (int j = 0; j < gpu->migs; j++)
                if (!strcmp(gpu->mig[j].uuid, uuid)) handle = handle_of(gpu->mig[j].uuid);
        }
        if (!handle) return NVML_NOT_FOUND;
    }
    return hand_out(__func__, handle, device);
}

EXPORT nvml_return nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device) {
    void *handle = NULL;
    {
        CALL_QUIET();
        for (int i = 0; i < call.state->gpus; i++)
            if (!strcmp(call.state->gpu[i].pci, bus_id)) handle = handle_of(call.state->gpu[i].uuid);
        if (!handle) return NVML_NOT_FOUND;
    }
    return hand_out(__func__, handle, device);
}

EXPORT nvml_return nvmlDeviceGetUUID(void *device, char *to, unsigned size) {
    CALL_IDENTITY(device);
    return copy_text(call.mig ? call.mig->uuid : call.gpu->uuid, to, size);
}

EXPORT nvml_return nvmlDeviceGetIndex(void *device, unsigned *index) {
    CALL_IDENTITY(device);
    *index = (unsigned)(call.mig ? call.mig - call.gpu->mig : call.gpu - call.state->gpu);
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetMinorNumber(void *device, unsigned *minor) {
    CALL_IDENTITY(device);
    if (call.mig) return NVML_INVALID_ARGUMENT;
    *minor = (unsigned)call.gpu->minor;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetName(void *device, char *to, unsigned size) {
    CALL(device);
    return copy_text(call.gpu->name, to, size);
}

EXPORT nvml_return nvmlDeviceGetSerial(void *device, char *to, unsigned size) {
    CALL_WHOLE_GPU(device);
    return *call.gpu->serial ? copy_text(call.gpu->serial, to, size) : NVML_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlDeviceGetPciInfo_v3(void *device, struct pci_info *info) {
    CALL_IDENTITY(device);
    memset(info, 0, sizeof *info);
    if (sscanf(call.gpu->pci, "%x:%x:%x", &info->domain, &info->bus, &info->device) != 3) return NVML_UNKNOWN;
    snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", info->domain, info->bus, info->device);
    snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%04X:%02X:%02X.0", info->domain & 0xFFFF, info->bus & 0xFF, info->device & 0xFF);
    info->device_id = 0x233010DEu;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetArchitecture(void *device, unsigned *architecture) {
    CALL(device);
    *architecture = (unsigned)call.gpu->architecture;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    CALL(device);
    *major = (int)call.gpu->compute_major, *minor = (int)call.gpu->compute_minor;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetPersistenceMode(void *device, unsigned *mode) {
    CALL_WHOLE_GPU(device);
    *mode = (unsigned)call.gpu->persistence;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetComputeMode(void *device, unsigned *mode) {
    CALL_WHOLE_GPU(device);
    *mode = DISABLED;                                         /* 0: the default, any number of contexts */
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending) {
    CALL_WHOLE_GPU(device);
    *current = *pending = 1;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetTotalEccErrors(void *device, unsigned error_type, unsigned counter_type, uint64_t *count) {
    CALL_WHOLE_GPU(device);
    (void)error_type, (void)counter_type;
    *count = ECC_MEMORY_ERRORS;
    return NVML_SUCCESS;
}

/* Ampere and later remap rows and retire no pages. */
EXPORT nvml_return nvmlDeviceGetRetiredPages(void *device, unsigned cause, unsigned *count, uint64_t *addresses) {
    CALL_WHOLE_GPU(device);
    (void)cause, (void)addresses;
    *count = 0;
    return NVML_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlDeviceGetRetiredPagesPendingStatus(void *device, unsigned *pending) {
    CALL_WHOLE_GPU(device);
    (void)pending;
    return NVML_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlDeviceGetRemappedRows(void *device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending, unsigned *failed) {
    CALL_WHOLE_GPU(device);
    *correctable = *uncorrectable = *pending = *failed = 0;
    return NVML_SUCCESS;
}
