/* MIG: instances as the state file lists them. A GPU with an instance has MIG enabled. */
#include <string.h>

#include "sim.h"

enum { AMPERE = 7 };

EXPORT nvml_return nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    CALL_WHOLE_GPU(device);
    if (call.gpu->architecture < AMPERE) return NVML_NOT_SUPPORTED;
    *current = *pending = call.gpu->migs > 0;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) {
    CALL_WHOLE_GPU(device);
    *count = call.gpu->architecture < AMPERE ? 0 : MAX_MIG - 1;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **instance) {
    CALL_WHOLE_GPU(device);
    if (index >= (unsigned)call.gpu->migs) return NVML_NOT_FOUND;
    *instance = handle_of(call.gpu->mig[index].uuid);
    return *instance ? NVML_SUCCESS : NVML_NO_MEMORY;
}

EXPORT nvml_return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *instance, void **device) {
    CALL_IDENTITY(instance);
    if (!call.mig) return NVML_INVALID_ARGUMENT;
    *device = handle_of(call.gpu->uuid);
    return *device ? NVML_SUCCESS : NVML_NO_MEMORY;
}

EXPORT nvml_return nvmlDeviceIsMigDeviceHandle(void *device, unsigned *is_instance) {
    CALL_IDENTITY(device);
    *is_instance = call.mig != NULL;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetGpuInstanceId(void *device, unsigned *id) {
    CALL(device);
    if (!call.mig) return NVML_NOT_SUPPORTED;
    *id = call.mig->gpu_instance;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetComputeInstanceId(void *device, unsigned *id) {
    CALL(device);
    if (!call.mig) return NVML_NOT_SUPPORTED;
    *id = call.mig->compute_instance;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetAttributes_v2(void *device, struct device_attributes *attributes) {
    CALL(device);
    if (!call.mig) return NVML_NOT_SUPPORTED;
    memset(attributes, 0, sizeof *attributes);
    attributes->gpu_slices = attributes->compute_slices = 1;
    attributes->memory_mb = call.mig->total >> 20;
    return NVML_SUCCESS;
}
