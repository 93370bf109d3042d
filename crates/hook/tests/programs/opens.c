/* `opens LIBRARY FUNCTION EXPECTED`: calls a function of a library that no other library sees. */
#include <dlfcn.h>

#include "check.h"

int main(int argc, char **argv) {
    (void)argc;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*function)(void) = (int (*)(void))dlsym(library, argv[2]);
    CHECK(function(), atoi(argv[3]));
    CHECK(function(), atoi(argv[3]));
    return 0;
}
