/* `counts LIBRARY TEAM`: the runtime of a library is searched once, however many regions it has. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"

static int lookups;

/* Replaces the dynamic linker's. */
int dladdr(const void *address, Dl_info *info) {
    int (*real)(const void *, Dl_info *) = (int (*)(const void *, Dl_info *))dlsym(RTLD_NEXT, "dladdr");
    lookups++;
    return real(address, info);
}

int main(int argc, char **argv) {
    (void)argc;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL, 1);
    int (*teams)(void) = (int (*)(void))dlsym(library, "teams");
    CHECK(teams(), 100 * atoi(argv[2]));
    int before = lookups;
    CHECK(teams(), 100 * atoi(argv[2]));
    CHECK(lookups, before);
    return 0;
}
