/* Process lists: who holds memory and is alive and visible to the caller, plus what the state file scripts. */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "sim.h"

enum mode { COMPUTE = 0, GRAPHICS = 1, MPS = 2, ALL = 3 };
enum { SMALL_ENTRY = 16, EARLY_PID = 1 };
static const char KINDS[] = "CGM";

struct process_list { struct process_detail entry[2 * MAX_PROCESSES]; int count; };

static int belongs(char kind, enum mode mode) {
    return mode == ALL || KINDS[mode] == kind;
}

static void add(struct process_list *list, unsigned pid, uint64_t bytes, unsigned gpu_instance, unsigned compute_instance) {
    if (list->count < 2 * MAX_PROCESSES) list->entry[list->count++] = (struct process_detail){pid, bytes, gpu_instance, compute_instance, 0};
}

static nvml_return add_holders(struct process_list *list, const char *uuid, enum mode mode, int with_memory, const struct mig *mig) {
    static struct holder holders[MAX_PROCESSES];
    int count;
    nvml_return result = memory_holders(uuid, holders, &count);
    for (int i = 0; !result && i < count; i++)
        if (holders[i].pid && belongs(holders[i].kind, mode))
            add(list, holders[i].pid, with_memory ? holders[i].bytes : NOT_AVAILABLE_BYTES, mig ? mig->gpu_instance : NO_INSTANCE,
                mig ? mig->compute_instance : NO_INSTANCE);
    return result;
}

/* A MIG parent lists the processes of its instances, without their memory (facts 3.2). */
static nvml_return processes_of(const struct call *call, enum mode mode, struct process_list *list) {
    const struct gpu *gpu = call->gpu;
    int with_memory = gpu->process_memory != 0;
    nvml_return result = NVML_SUCCESS;
    list->count = 0;
    for (int i = 0; !result && i < gpu->migs; i++)
        if (!call->mig || call->mig == &gpu->mig[i]) result = add_holders(list, gpu->mig[i].uuid, mode, with_memory && call->mig, &gpu->mig[i]);
    if (!result && !call->mig) result = add_holders(list, gpu->uuid, mode, with_memory, NULL);
    for (int i = 0; !result && i < gpu->scripted; i++) {
        const struct scripted *process = &gpu->script[i];
        if (belongs(process->kind, mode) && (!call->mig || process->gpu_instance == call->mig->gpu_instance))
            add(list, process->pid, process->bytes, process->gpu_instance, process->compute_instance);
    }
    return result;
}

/* Processes that appeared since the count probe: strangers with the PID of init and no figure. */
static void grow(struct gpu *gpu, struct process_list *list) {
    if (!gpu->grow || !gpu->grow_times) return;
    if (gpu->grow_times > 0) gpu->grow_times--;
    for (long long i = 0; i < gpu->grow; i++) add(list, EARLY_PID, NOT_AVAILABLE_BYTES, NO_INSTANCE, NO_INSTANCE);
}

static void write_entry(char *to, const struct process_detail *from, size_t entry_size) {
    if (entry_size == SMALL_ENTRY) *(struct process_info_v1 *)(void *)to = (struct process_info_v1){from->pid, from->used};
    else memcpy(to, from, entry_size);                        /* 24 bytes are the beginning of 32 */
}

/* Count 0 and NULL ask for the number: 7 if there is a process, 0 only if there is none. */
static nvml_return list_processes(const struct call *call, enum mode mode, unsigned *room, void *entries, size_t entry_size) {
    static struct process_list list;
    nvml_return result = processes_of(call, mode, &list);
    if (result) return result;
    if (entries) grow(call->gpu, &list);
    size_t bytes = entries ? *room * sizeof(struct process_info) : 0;
    int fits = (unsigned)list.count <= *room && (size_t)list.count * entry_size <= bytes;
    *room = (unsigned)list.count;
    if (list.count && !fits) return NVML_INSUFFICIENT_SIZE;
    for (int i = 0; i < list.count; i++) write_entry((char *)entries + (size_t)i * entry_size, &list.entry[i], entry_size);
    return NVML_SUCCESS;
}

#define PROCESS_LIST(name, mode)                                                                             \
    EXPORT nvml_return name##_v2(void *device, unsigned *count, void *entries) {                             \
        CALL(device);                                                                                        \
        return list_processes(&call, mode, count, entries, sizeof(struct process_info));                     \
    }                                                                                                        \
    EXPORT nvml_return name##_v3(void *device, unsigned *count, void *entries) {                             \
        CALL(device);                                                                                        \
        return list_processes(&call, mode, count, entries, (size_t)call.gpu->layout);                        \
    }

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, COMPUTE)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, MPS)

EXPORT nvml_return nvmlDeviceGetRunningProcessDetailList(void *device, struct process_detail_list *wanted) {
    static struct process_list list;
    CALL(device);
    if (wanted->version != PROCESS_DETAIL_V1) return NVML_VERSION_MISMATCH;
    if (wanted->mode > ALL) return NVML_INVALID_ARGUMENT;
    nvml_return result = processes_of(&call, (enum mode)wanted->mode, &list);
    if (result) return result;
    int fits = wanted->entries && wanted->count >= (unsigned)list.count;
    wanted->count = (unsigned)list.count;
    if (list.count && !fits) return NVML_INSUFFICIENT_SIZE;
    if (list.count) memcpy(wanted->entries, list.entry, (size_t)list.count * sizeof *list.entry);
    return NVML_SUCCESS;
}

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

EXPORT nvml_return nvmlDeviceGetProcessUtilization(void *device, struct process_sample *samples, unsigned *room, unsigned long long last_seen_us) {
    static struct worker workers[MAX_PROCESSES];
    int count, visible = 0;
    uint64_t now = now_us();
    CALL(device);
    if (call.gpu->migs) return NVML_NOT_SUPPORTED;
    nvml_return result = working_processes(call.gpu->uuid, workers, &count);
    if (result) return result;
    for (int i = 0; i < count; i++)
        if (workers[i].pid) workers[visible++] = workers[i];
    if (!visible || last_seen_us >= now) return NVML_NOT_FOUND;
    int fits = samples && *room >= (unsigned)visible;
    *room = (unsigned)visible;
    for (int i = 0; fits && i < visible; i++) samples[i] = (struct process_sample){workers[i].pid, now, workers[i].utilisation, workers[i].sm, 0, 0};
    return fits ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}

/* Accounting remembers the dead; in here it remembers what the state file says. */
EXPORT nvml_return nvmlDeviceGetAccountingMode(void *device, unsigned *mode) {
    CALL_WHOLE_GPU(device);
    *mode = (unsigned)call.gpu->accounting;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetAccountingBufferSize(void *device, unsigned *size) {
    CALL_WHOLE_GPU(device);
    *size = 4000;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetAccountingPids(void *device, unsigned *room, unsigned *pids) {
    CALL_WHOLE_GPU(device);
    if (!call.gpu->accounting) return NVML_NOT_SUPPORTED;
    int fits = *room >= (unsigned)call.gpu->accounted && pids;
    *room = (unsigned)call.gpu->accounted;
    if (call.gpu->accounted && !fits) return NVML_INSUFFICIENT_SIZE;
    for (int i = 0; i < call.gpu->accounted; i++) pids[i] = call.gpu->account[i].pid;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetAccountingStats(void *device, unsigned pid, struct accounting_stats *stats) {
    CALL_WHOLE_GPU(device);
    if (!call.gpu->accounting) return NVML_NOT_SUPPORTED;
    for (int i = 0; i < call.gpu->accounted; i++) {
        const struct accounted *known = &call.gpu->account[i];
        if (known->pid != pid) continue;
        *stats = (struct accounting_stats){.gpu_percent = known->gpu_percent, .peak_bytes = known->peak_bytes, .time_ms = known->time_ms,
                                           .start_us = known->start_us, .running = known->running};
        return NVML_SUCCESS;
    }
    return NVML_NOT_FOUND;
}
