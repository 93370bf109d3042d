/* A library between the hook and the runtimes: counts the calls of the runtimes' barriers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

static int count;

int passed(void);
int passed(void) { return __atomic_load_n(&count, __ATOMIC_SEQ_CST); }

static void *counted(const char *name) {
    __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
    return dlsym(RTLD_NEXT, name);
}

void GOMP_barrier(void);
void GOMP_barrier(void) { ((void (*)(void))counted("GOMP_barrier"))(); }

void GOMP_loop_end(void);
void GOMP_loop_end(void) { ((void (*)(void))counted("GOMP_loop_end"))(); }

void GOMP_sections_end(void);
void GOMP_sections_end(void) { ((void (*)(void))counted("GOMP_sections_end"))(); }

void __kmpc_barrier(void *location, int thread);
void __kmpc_barrier(void *location, int thread) {
    ((void (*)(void *, int))counted("__kmpc_barrier"))(location, thread);
}

int pthread_barrier_wait(pthread_barrier_t *barrier) {
    return ((int (*)(pthread_barrier_t *))counted("pthread_barrier_wait"))(barrier);
}
