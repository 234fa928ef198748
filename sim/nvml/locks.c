/* Device memory and activity as the kernel knows them: files below memory/<uuid>/ and activity/<uuid>/ count while their
 * flock is held, that is until the last process that shares the open file has ended: the driver's rule for its clients.
 *
 * Whether a lock is held is asked by a shared lock that is given back at once, because /proc/locks leaves out the locks of other PID
 * namespaces while device memory is the same for every reader. Shared locks do not disturb each other, and a worker gives
 * its file the final name only after locking it, so no reader can come in between. Who holds it is read from /proc/locks. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sim.h"

enum { MAX_LOCKS = 4096 };
struct lock { unsigned pid; dev_t device; ino_t inode; };
static struct lock locks[MAX_LOCKS];
static int lock_count;

static int read_locks(void) {
    FILE *file = fopen("/proc/locks", "re");
    char line[256], kind[16];
    unsigned pid, major_number, minor_number;
    unsigned long long inode;
    if (!file) return 0;
    for (lock_count = 0; lock_count < MAX_LOCKS && fgets(line, sizeof line, file);) {
        if (sscanf(line, "%*d: %15s %*s %*s %u %x:%x:%llu", kind, &pid, &major_number, &minor_number, &inode) != 5) continue;
        if (strcmp(kind, "FLOCK")) continue;
        locks[lock_count++] = (struct lock){pid, makedev(major_number, minor_number), (ino_t)inode};
    }
    fclose(file);
    return 1;
}

/* The driver lists no process that has ended. A zombie whose threads live has not (facts 4.2). */
static int is_alive(unsigned pid) {
    char path[64], text[1024], state;
    long threads;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (length <= 0) return 0;
    text[length] = 0;
    char *after_name = strrchr(text, ')');                    /* the name may hold blanks and brackets (facts 4.1) */
    if (!after_name) return 0;
    if (sscanf(after_name + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state, &threads) != 2) return 0;
    return state == 'X' ? 0 : state != 'Z' || threads > 1;
}

static unsigned living_holder(const struct stat *file) {
    for (int i = 0; i < lock_count; i++)
        if (locks[i].inode == file->st_ino && locks[i].device == file->st_dev && is_alive(locks[i].pid)) return locks[i].pid;
    return 0;
}

/* 1: held; 0: not held, or no file of ours; negative: cannot be told. `text` receives the beginning of the file if wanted. */
static int is_held(int folder, const char *name, struct stat *file, char *text, size_t size) {
    int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return errno == ENOENT || errno == ELOOP ? 0 : -1;
    int held = 0;
    if (!fstat(descriptor, file) && S_ISREG(file->st_mode) && flock(descriptor, LOCK_SH | LOCK_NB)) held = errno == EWOULDBLOCK ? 1 : -1;
    if (held == 1 && text) {
        ssize_t length = pread(descriptor, text, size - 1, 0);
        text[length > 0 ? length : 0] = 0;
    }
    close(descriptor);
    return held;
}

typedef int visit(const char *name, const struct stat *file, const char *text, void *context);

static nvml_return each_held(const char *kind, const char *uuid, int with_text, visit *visitor, void *context) {
    char path[4096], text[64];
    struct stat file;
    snprintf(path, sizeof path, "%s/%s/%s", sim_folder(), kind, uuid);
    DIR *folder = opendir(path);
    if (!folder) return errno == ENOENT ? NVML_SUCCESS : NVML_NO_PERMISSION;
    nvml_return result = read_locks() ? NVML_SUCCESS : NVML_UNKNOWN;
    for (struct dirent *entry; !result && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        int held = is_held(dirfd(folder), entry->d_name, &file, with_text ? text : NULL, sizeof text);
        if (held < 0) result = NVML_NO_PERMISSION;            /* not counting it would call held memory free */
        else if (held && !visitor(entry->d_name, &file, text, context)) result = NVML_NO_MEMORY;
    }
    closedir(folder);
    return result;
}

struct holder_list { struct holder *out; int count; };

/* A file `<bytes>.<anything>`; `<bytes>.G...` and `<bytes>.M...` are graphics and MPS clients. One entry a process and kind. */
static int add_holder(const char *name, const struct stat *file, const char *text, void *context) {
    struct holder_list *list = context;
    char *end;
    (void)text;
    uint64_t bytes = strtoull(name, &end, 10);
    if (!isdigit((unsigned char)name[0]) || *end != '.') return 1;
    char kind = end[1] == 'G' || end[1] == 'M' ? end[1] : 'C';
    unsigned pid = living_holder(file);
    for (int i = 0; i < list->count; i++)
        if (list->out[i].pid == pid && list->out[i].kind == kind) return list->out[i].bytes += bytes, 1;
    if (list->count == MAX_PROCESSES) return 0;
    list->out[list->count++] = (struct holder){pid, bytes, kind};
    return 1;
}

nvml_return memory_holders(const char *uuid, struct holder *out, int *count) {
    struct holder_list list = {out, 0};
    nvml_return result = each_held("memory", uuid, 0, add_holder, &list);
    *count = list.count;
    return result;
}

struct worker_list { struct worker *out; int count; };

static int add_worker(const char *name, const struct stat *file, const char *text, void *context) {
    struct worker_list *list = context;
    unsigned utilisation, sm;
    (void)name;
    if (sscanf(text, "%u %u", &utilisation, &sm) != 2) return 1;
    if (list->count == MAX_PROCESSES) return 0;
    list->out[list->count++] = (struct worker){living_holder(file), utilisation, sm};
    return 1;
}

nvml_return working_processes(const char *uuid, struct worker *out, int *count) {
    struct worker_list list = {out, 0};
    nvml_return result = each_held("activity", uuid, 1, add_worker, &list);
    *count = list.count;
    return result;
}
