/* Costs what a program that is not here costs, and prints what it would print. usage: standin CPU_MS WAIT_MS FILE */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: standin CPU_MS WAIT_MS FILE\n"), 2;
    double wait_ms = atof(argv[2]);
    struct timespec wait = {(time_t)(wait_ms / 1e3), (long)((wait_ms - 1e3 * (long)(wait_ms / 1e3)) * 1e6)};
    nanosleep(&wait, NULL);
    while (cpu_ms() < atof(argv[1])) {}
    FILE *file = fopen(argv[3], "r");
    if (!file) return perror(argv[3]), 1;
    for (int c; (c = getc(file)) != EOF;) putchar(c);
    return 0;
}
