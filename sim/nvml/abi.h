/* The part of the NVML binary interface that nvidia-ml-py 13.615.71 calls: codes, structures and their sizes.
 * Written from the bindings' ctypes definitions, which are what a caller in Python really allocates. */
#ifndef GPU_SIM_ABI_H
#define GPU_SIM_ABI_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef int nvml_return;

enum {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_NO_MEMORY = 20,
    NVML_VERSION_MISMATCH = 25,
    NVML_UNKNOWN = 999,
};

#define NOT_AVAILABLE_BYTES UINT64_MAX   /* usedGpuMemory of a process whose memory cannot be told */
#define NO_INSTANCE 0xFFFFFFFFu          /* GPU and compute instance id of a process outside MIG */
#define MEMORY_V2 0x02000028u
#define PROCESS_DETAIL_V1 0x01000018u

struct memory_v1 { uint64_t total, free, used; };
struct memory_v2 { unsigned version; uint64_t total, reserved, free, used; };
struct bar1_memory { uint64_t total, free, used; };
struct utilization { unsigned gpu, memory; };

struct process_info { unsigned pid; uint64_t used; unsigned gpu_instance, compute_instance; };           /* 24 bytes: _v2, _v3 */
struct process_info_v1 { unsigned pid; uint64_t used; };                                                 /* 16 bytes: before R450 */
struct process_detail { unsigned pid; uint64_t used; unsigned gpu_instance, compute_instance; uint64_t protected_used; }; /* 32 bytes */
struct process_detail_list { unsigned version, mode, count; struct process_detail *entries; };
struct process_sample { unsigned pid; uint64_t timestamp_us; unsigned sm, memory, encoder, decoder; };

struct accounting_stats {
    unsigned gpu_percent, memory_percent;
    uint64_t peak_bytes, time_ms, start_us;
    unsigned running, reserved[5];
};

struct pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct device_attributes {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
    uint64_t memory_mb;
};

struct event_data { void *device; uint64_t type, data; unsigned gpu_instance, compute_instance; };

struct gpm_metric { unsigned id; nvml_return result; double value; const char *short_name, *long_name, *unit; };
struct gpm_request { unsigned version, count; void *sample1, *sample2; struct gpm_metric metrics[]; };
struct gpm_support { unsigned version, supported; };

_Static_assert(sizeof(struct process_info) == 24 && sizeof(struct process_info_v1) == 16, "entry layouts of facts 3.3");
_Static_assert(sizeof(struct process_detail) == 32, "the layout early R535 wrote under the _v3 symbol");
_Static_assert(sizeof(struct memory_v2) == 0x28, "its size is part of the version number");
_Static_assert(sizeof(struct pci_info) == 68, "c_nvmlPciInfo");

#endif
