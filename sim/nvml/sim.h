/* What the simulator's own parts share: the state as read from its file, locks as read from the kernel, and a call's frame. */
#ifndef GPU_SIM_H
#define GPU_SIM_H

#include <stddef.h>

#include "abi.h"

enum { MAX_GPUS = 16, MAX_MIG = 8, MAX_SCRIPTED = 64, MAX_FAULTS = 64, MAX_ACCOUNTED = 64, MAX_PROCESSES = 512, TEXT = 96 };

struct fault {               /* a line `error` or `delay` */
    char function[TEXT];     /* exact exported name, or a beginning followed by `*` */
    nvml_return error;       /* 0: none */
    long long times;         /* how often it still strikes in this process; negative: always */
    long long delay_ms;
    int gpu;                 /* index of the GPU it is limited to; negative: any */
};

struct scripted { char kind; unsigned pid; uint64_t bytes; unsigned gpu_instance, compute_instance; };
struct accounted { unsigned pid, running, gpu_percent; uint64_t peak_bytes, time_ms, start_us; };
struct mig { char uuid[TEXT]; unsigned gpu_instance, compute_instance; uint64_t total; };

struct gpu {
    char uuid[TEXT], name[TEXT], serial[TEXT], pci[TEXT];
    long long minor, total, reserved, baseline, ghost;
    long long latch_utilisation, latch_sm;                    /* negative: not latched */
    long long architecture, compute_major, compute_minor;
    long long power_idle_mw, power_limit_mw, energy_mj, temperature, sm_clock_mhz, persistence;
    long long lost;                                           /* 0, or the code every reading answers: 15 lost, 16 reset required */
    long long gpm, accounting, process_memory;                /* 1: there is such a thing */
    long long layout;                                         /* bytes of an entry under the _v3 symbols: 16, 24 or 32 */
    long long grow, grow_times;                               /* processes that appear between count probe and list */
    int migs, scripted, accounted;
    struct mig mig[MAX_MIG];
    struct scripted script[MAX_SCRIPTED];
    struct accounted account[MAX_ACCOUNTED];
};

struct state {
    char driver[TEXT], nvml[TEXT];
    long long cuda;
    int gpus, faults;
    struct gpu gpu[MAX_GPUS];
    struct fault fault[MAX_FAULTS];
};

/* state.c */
const char *sim_folder(void);
nvml_return current_state(struct state **state);              /* re-read when the file changed; counts of faults start again then */

/* locks.c */
struct holder { unsigned pid; uint64_t bytes; char kind; };   /* pid 0: held, but by nobody this PID namespace can see alive */
struct worker { unsigned pid, utilisation, sm; };
nvml_return memory_holders(const char *uuid, struct holder *out, int *count);
nvml_return working_processes(const char *uuid, struct worker *out, int *count);

/* call.c: every exported function but nvmlErrorString and nvmlInitWithFlags opens with CALL or one of its variants. */
struct call { nvml_return error; struct state *state; struct gpu *gpu; struct mig *mig; };
enum need { NEED_NOTHING, NEED_IDENTITY, NEED_DEVICE, NEED_WHOLE_GPU };
struct call enter(const char *function, enum need need, void *handle);
void leave(struct call *call);
nvml_return start(const char *function);
nvml_return finish(void);
void *handle_of(const char *uuid);
nvml_return copy_text(const char *text, char *to, unsigned size);
#define OPEN(need, handle)                                                               \
    struct call call __attribute__((cleanup(leave))) = enter(__func__, need, handle);   \
    if (call.error) return call.error
#define CALL(handle) OPEN(NEED_DEVICE, handle)                /* a reading; a lost GPU answers with its error */
#define CALL_IDENTITY(handle) OPEN(NEED_IDENTITY, handle)     /* what the library keeps after the GPU is lost */
#define CALL_WHOLE_GPU(handle) OPEN(NEED_WHOLE_GPU, handle)   /* refused on a MIG handle */
#define CALL_SYSTEM() OPEN(NEED_NOTHING, NULL)
#define CALL_QUIET()                                          /* the first half of a call in two: no injected fault yet */ \
    struct call call __attribute__((cleanup(leave))) = enter(NULL, NEED_NOTHING, NULL);                                     \
    if (call.error) return call.error

/* usage.c */
nvml_return used_bytes(const struct call *call, uint64_t *used);
nvml_return activity_of(const struct call *call, const char *uuid, unsigned *utilisation, unsigned *sm);

#endif
