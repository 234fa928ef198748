/* Memory, activity and what follows from them. Memory is baseline + ghost + what locks hold; nothing in here remembers. */

#include "sim.h"

enum { MAX_PERCENT = 100, NO_BAR1_USE = 0, PSTATE_IN_USE = 0, PSTATE_IDLE = 8, GPU_SENSOR = 0, SM_CLOCK = 1 };

static nvml_return add_held(const char *uuid, uint64_t *used) {
    static struct holder holders[MAX_PROCESSES];
    int count;
    nvml_return result = memory_holders(uuid, holders, &count);
    for (int i = 0; !result && i < count; i++) *used += holders[i].bytes;
    return result;
}

/* Compute instances of one GPU instance share its memory, so a MIG handle answers with that of its GPU instance. */
static nvml_return add_instances(const struct call *call, uint64_t *used) {
    nvml_return result = NVML_SUCCESS;
    for (int i = 0; !result && i < call->gpu->migs; i++)
        if (!call->mig || call->mig->gpu_instance == call->gpu->mig[i].gpu_instance) result = add_held(call->gpu->mig[i].uuid, used);
    return result;
}

nvml_return used_bytes(const struct call *call, uint64_t *used) {
    *used = call->mig ? 0 : (uint64_t)(call->gpu->baseline + call->gpu->ghost);
    nvml_return result = add_instances(call, used);
    return result || call->mig ? result : add_held(call->gpu->uuid, used);
}

static uint64_t total_bytes(const struct call *call) {
    return call->mig ? call->mig->total : (uint64_t)call->gpu->total;
}

static uint64_t rest(uint64_t total, uint64_t taken) {
    return total > taken ? total - taken : 0;
}

EXPORT nvml_return nvmlDeviceGetMemoryInfo(void *device, struct memory_v1 *memory) {
    CALL(device);
    nvml_return result = used_bytes(&call, &memory->used);
    if (!call.mig) memory->used += (uint64_t)call.gpu->reserved;                /* v1 counts what the driver reserves (facts 3.5) */
    memory->total = total_bytes(&call);
    memory->free = rest(memory->total, memory->used);
    return result;
}

EXPORT nvml_return nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory) {
    CALL(device);
    if (memory->version != MEMORY_V2) return NVML_VERSION_MISMATCH;
    nvml_return result = used_bytes(&call, &memory->used);
    memory->reserved = call.mig ? 0 : (uint64_t)call.gpu->reserved;
    memory->total = total_bytes(&call);
    memory->free = rest(memory->total, memory->used + memory->reserved);
    return result;
}

EXPORT nvml_return nvmlDeviceGetBAR1MemoryInfo(void *device, struct bar1_memory *memory) {
    CALL(device);
    memory->total = memory->free = total_bytes(&call);
    memory->used = NO_BAR1_USE;
    return NVML_SUCCESS;
}

static unsigned percent(unsigned sum, long long latch) {
    unsigned shown = latch < 0 ? sum : (unsigned)latch;
    return shown > MAX_PERCENT ? MAX_PERCENT : shown;
}

nvml_return activity_of(const struct call *call, const char *uuid, unsigned *utilisation, unsigned *sm) {
    static struct worker workers[MAX_PROCESSES];
    int count;
    unsigned utilisation_sum = 0, sm_sum = 0;
    nvml_return result = working_processes(uuid, workers, &count);
    for (int i = 0; !result && i < count; i++) utilisation_sum += workers[i].utilisation, sm_sum += workers[i].sm;
    *utilisation = percent(utilisation_sum, call->gpu->latch_utilisation);
    *sm = percent(sm_sum, call->gpu->latch_sm);
    return result;
}

EXPORT nvml_return nvmlDeviceGetUtilizationRates(void *device, struct utilization *rates) {
    CALL(device);
    if (call.gpu->migs) return NVML_NOT_SUPPORTED;            /* on the parent and on the instance (facts 3.6) */
    return activity_of(&call, call.gpu->uuid, &rates->gpu, &rates->memory);
}

EXPORT nvml_return nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    unsigned utilisation, sm;
    CALL_WHOLE_GPU(device);
    nvml_return result = activity_of(&call, call.gpu->uuid, &utilisation, &sm);
    long long range = call.gpu->power_limit_mw - call.gpu->power_idle_mw;
    *milliwatts = (unsigned)(call.gpu->power_idle_mw + range * sm / MAX_PERCENT);
    return result;
}

EXPORT nvml_return nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
    CALL_WHOLE_GPU(device);
    *milliwatts = (unsigned)call.gpu->power_limit_mw;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetTotalEnergyConsumption(void *device, uint64_t *millijoules) {
    CALL_WHOLE_GPU(device);
    if (call.gpu->energy_mj < 0) return NVML_NOT_SUPPORTED;
    *millijoules = (uint64_t)call.gpu->energy_mj;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) {
    CALL_WHOLE_GPU(device);
    if (sensor != GPU_SENSOR) return NVML_INVALID_ARGUMENT;
    *celsius = (unsigned)call.gpu->temperature;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetClockInfo(void *device, unsigned clock, unsigned *mhz) {
    CALL_WHOLE_GPU(device);
    if (clock != SM_CLOCK) return NVML_NOT_SUPPORTED;
    *mhz = (unsigned)call.gpu->sm_clock_mhz;
    return NVML_SUCCESS;
}

/* A live context keeps the clocks up even when idle (facts 3.6). */
EXPORT nvml_return nvmlDeviceGetPerformanceState(void *device, unsigned *state) {
    uint64_t used;
    CALL_WHOLE_GPU(device);
    nvml_return result = used_bytes(&call, &used);
    *state = used > (uint64_t)(call.gpu->baseline + call.gpu->ghost) ? PSTATE_IN_USE : PSTATE_IDLE;
    return result;
}

static nvml_return clock_reasons(const struct call *call, uint64_t *reasons) {
    enum { GPU_IDLE = 1 };
    unsigned utilisation, sm;
    nvml_return result = activity_of(call, call->gpu->uuid, &utilisation, &sm);
    *reasons = utilisation ? 0 : GPU_IDLE;
    return result;
}

EXPORT nvml_return nvmlDeviceGetCurrentClocksThrottleReasons(void *device, uint64_t *reasons) {
    CALL_WHOLE_GPU(device);
    return clock_reasons(&call, reasons);
}

EXPORT nvml_return nvmlDeviceGetCurrentClocksEventReasons(void *device, uint64_t *reasons) {
    CALL_WHOLE_GPU(device);
    return clock_reasons(&call, reasons);
}
