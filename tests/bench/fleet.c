/* Thousands of cheap processes with descriptors, and holders of devices in every shape, for the bench.
 *
 * usage: fleet IDLE DESCRIPTORS < PLAN. A line of the plan is one holder: SHAPE CGROUP NODE [NODE...]
 *   fd      opens the nodes            map     maps the first node and closes it again; opens nothing
 *   thread  its leader ends, a live thread opened the nodes           orphan  a fork child; its parent has ended
 * CGROUP: the cgroup.procs file to enter, or "-". Every holder has a network namespace of its own.
 * Prints "PID SHAPE" a holder, in the plan's order, then "ready". All of them wait on one pipe and end when this process
 * ends, however it ends: nobody has to be killed. Each has about 200 KiB of its own, tables of the kernel included. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 16, MAX_LINE = 4096 };
static int lifeline[2], descriptors;
struct plan { char *shape, *cgroup, *nodes[MAX_WORDS]; int count; };

static void fail(const char *what) {
    fprintf(stderr, "fleet: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void wait_for_the_end(void) {
    char byte;
    while (read(lifeline[0], &byte, 1) < 0 && errno == EINTR) {}
    _exit(0);
}

/* What a common process has open: pipes, sockets, event descriptors, files, /dev/null. */
static void open_the_ordinary(void) {
    int pair[2];
    for (int have = 4; have < descriptors; have++) {
        if (have % 5 == 0 && have + 1 < descriptors && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) have++;
        else if (have % 5 == 1) eventfd(0, EFD_CLOEXEC);
        else open(have % 5 == 2 ? "/dev/null" : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    }
}

static void open_nodes(const struct plan *plan) {
    for (int i = 0; i < plan->count; i++)
        if (open(plan->nodes[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC) < 0) fail(plan->nodes[i]);
}

static void map_node(const struct plan *plan) {
    int node = open(plan->nodes[0], O_RDWR | O_CLOEXEC);
    if (node < 0 || mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, node, 0) == MAP_FAILED) fail(plan->nodes[0]);
    close(node);
}

static void say(int to, pid_t pid) {
    if (write(to, &pid, sizeof pid) != sizeof pid) fail("telling a PID");
}

struct thread { const struct plan *plan; int to; };
static void *live_thread(void *context) {
    struct thread *thread = context;
    open_nodes(thread->plan);
    say(thread->to, getpid());
    wait_for_the_end();
    return NULL;
}

static void enter(const char *cgroup) {
    if (!strcmp(cgroup, "-")) return;
    int file = open(cgroup, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, "0", 1) != 1) fail(cgroup);
    close(file);
}

static void hold(const struct plan *plan, int to) {
    enter(plan->cgroup);
    if (unshare(CLONE_NEWNET)) fail("a network namespace");
    open_the_ordinary();
    if (!strcmp(plan->shape, "map")) map_node(plan);
    else if (!strcmp(plan->shape, "thread")) {
        static struct thread thread;
        pthread_t id;
        thread = (struct thread){plan, to};
        if (pthread_create(&id, NULL, live_thread, &thread)) fail("a thread");
        syscall(SYS_exit, 0);                                      /* only the leader: exit_group would end the thread */
    } else {
        open_nodes(plan);
        if (!strcmp(plan->shape, "orphan") && fork()) _exit(0);    /* the parent is gone, its child has its descriptors */
    }
    say(to, getpid());
    wait_for_the_end();
}

static int read_plan(char *line, struct plan *plan) {
    char *rest = line, *word;
    int words = 0;
    memset(plan, 0, sizeof *plan);
    while ((word = strsep(&rest, " \n")))
        if (*word) {
            if (words == 0) plan->shape = word;
            else if (words == 1) plan->cgroup = word;
            else if (plan->count < MAX_WORDS) plan->nodes[plan->count++] = word;
            words++;
        }
    return words >= 3;
}

static void start_holder(char *line) {
    struct plan plan;
    int told[2];
    pid_t pid = 0;
    if (!read_plan(line, &plan)) fail("a line of the plan is too short");
    if (pipe2(told, O_CLOEXEC)) fail("a pipe");
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (!child) {
        close(lifeline[1]);
        hold(&plan, told[1]);
    }
    close(told[1]);
    if (read(told[0], &pid, sizeof pid) != sizeof pid) fail("a holder did not start");
    close(told[0]);
    if (!strcmp(plan.shape, "orphan")) waitpid(child, NULL, 0);
    printf("%d %s\n", pid, plan.shape);
    fflush(stdout);                                                /* a later child must not print it again */
}

int main(int argc, char **argv) {
    char line[MAX_LINE];
    if (argc != 3) return fprintf(stderr, "usage: fleet IDLE DESCRIPTORS < PLAN\n"), 2;
    int idle = atoi(argv[1]);
    descriptors = atoi(argv[2]);
    if (pipe2(lifeline, O_CLOEXEC)) fail("the lifeline");
    for (int i = 0; i < idle; i++) {
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (!child) {
            close(lifeline[1]);
            open_the_ordinary();
            wait_for_the_end();
        }
    }
    while (fgets(line, sizeof line, stdin)) start_holder(line);
    printf("ready\n");
    fflush(stdout);
    wait_for_the_end();
}
