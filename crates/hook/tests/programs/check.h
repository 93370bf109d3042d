/* The checks of the programs. */
#include <stdio.h>
#include <stdlib.h>

#define CHECK(what, expected)                                                                                       \
    do {                                                                                                            \
        long found_ = (what), expected_ = (expected);                                                               \
        if (found_ != expected_) {                                                                                  \
            fprintf(stderr, "%s:%d: %s is %ld, not %ld\n", __FILE__, __LINE__, #what, found_, expected_);           \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)
