/* GPU performance monitoring: two samples, and what happened between them, in percent (facts 3.6). A sample in here is the activity
 * at its moment; between two it is their mean. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { METRICS_VERSION = 1, GRAPHICS_UTILISATION = 1, SM_UTILISATION = 2 };
struct sample { int taken; unsigned graphics, sm; };

EXPORT nvml_return nvmlGpmQueryDeviceSupport(void *device, struct gpm_support *support) {
    CALL(device);
    if (support->version != METRICS_VERSION) return NVML_VERSION_MISMATCH;
    support->supported = call.gpu->gpm != 0;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlGpmSampleAlloc(struct sample **sample) {
    CALL_SYSTEM();
    *sample = calloc(1, sizeof **sample);
    return *sample ? NVML_SUCCESS : NVML_NO_MEMORY;
}

EXPORT nvml_return nvmlGpmSampleFree(struct sample *sample) {
    CALL_SYSTEM();
    free(sample);
    return NVML_SUCCESS;
}

static nvml_return take(const struct call *call, const char *uuid, struct sample *sample) {
    if (!sample) return NVML_INVALID_ARGUMENT;
    if (!call->gpu->gpm) return NVML_NOT_SUPPORTED;
    nvml_return result = activity_of(call, uuid, &sample->graphics, &sample->sm);
    sample->taken = !result;
    return result;
}

EXPORT nvml_return nvmlGpmSampleGet(void *device, struct sample *sample) {
    CALL(device);
    return take(&call, call.mig ? call.mig->uuid : call.gpu->uuid, sample);
}

EXPORT nvml_return nvmlGpmMigSampleGet(void *device, unsigned gpu_instance, struct sample *sample) {
    CALL_WHOLE_GPU(device);
    for (int i = 0; i < call.gpu->migs; i++)
        if (call.gpu->mig[i].gpu_instance == gpu_instance) return take(&call, call.gpu->mig[i].uuid, sample);
    return NVML_INVALID_ARGUMENT;
}

static void measure(struct gpm_metric *metric, const struct sample *first, const struct sample *second) {
    metric->result = NVML_SUCCESS;
    if (metric->id == GRAPHICS_UTILISATION) metric->value = (first->graphics + second->graphics) / 2.0;
    else if (metric->id == SM_UTILISATION) metric->value = (first->sm + second->sm) / 2.0;
    else metric->result = NVML_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlGpmMetricsGet(struct gpm_request *request) {
    CALL_SYSTEM();
    if (request->version != METRICS_VERSION) return NVML_VERSION_MISMATCH;
    const struct sample *first = request->sample1, *second = request->sample2;
    if (!first || !second || !first->taken || !second->taken) return NVML_INVALID_ARGUMENT;
    for (unsigned i = 0; i < request->count; i++) measure(&request->metrics[i], first, second);      /* never beyond count: callers allocate less */
    return NVML_SUCCESS;
}
