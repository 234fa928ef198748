/* Enough of libcuda.so.1 to see that it is called as its header says: wrong sizes, order or pointers answer an error. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int current, memory, compiled;
static uint64_t allocated = 0x7f0000000000;

int cuInit(unsigned flags) { return flags != 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = 40 + ordinal, 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &current, device < 40; }
int cuCtxSetCurrent(void *context) { return context != &current; }
int cuCtxSynchronize(void) { return usleep(1000), 0; }
int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) { return *pointer = allocated, memory = 1, bytes != 64 << 20; }
int cuMemsetD8_v2(uint64_t pointer, unsigned char value, size_t bytes) { return pointer != allocated || value != 1 || bytes != 64 << 20; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { return *value = 132, attribute != 16 || device < 40; }
int cuModuleLoadData(void **module, const void *image) {
    if (!strstr(image, ".target sm_75")) return 222;               /* as a compiler that dropped the oldest targets */
    return *module = &compiled, !strstr(image, ".entry multiply_add");
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    return *function = &compiled, module != &compiled || strcmp(name, "multiply_add");
}
int cuLaunchKernel(void *function, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz, unsigned shared,
                   void *stream, void **parameters, void **extra) {
    if (function != &compiled || by != 1 || bz != 1 || ty != 1 || tz != 1 || shared || stream || extra) return 1;
    if (*(uint64_t *)parameters[0] != allocated || *(uint32_t *)parameters[1] < 1000) return 2;
    return !((bx == 1 && tx == 1) || (bx == 132 * 16 && tx == 256));
}
int cuGetErrorString(int code, const char **words) {
    static char text[32];
    snprintf(text, sizeof text, "fake error %d", code);
    return *words = text, 0;
}
