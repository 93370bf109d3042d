#!/bin/sh
# Builds a C project of so many files with two jobs of make at a time, and runs what comes out.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for file in $(seq "$1"); do
    echo '#include <math.h>'
    for function in $(seq 40); do
        echo "double f${file}_$function(double x) { for (int i = 0; i < $function; i++) x += sin(x * $file) / (i + 1); return x; }"
    done
done | awk -v RS='#include' 'NR > 1 { print "#include" $0 > ("part" NR - 1 ".c") }'
printf '#include <stdio.h>\ndouble f1_1(double);\nint main(void) { printf("build ok %%.3f\\n", f1_1(0)); return 0; }\n' >main.c
printf 'objects := $(patsubst %%.c,%%.o,$(wildcard *.c))\nproject: $(objects)\n\t@$(CC) -o $@ $(objects) -lm\n%%.o: %%.c\n\t@$(CC) -O2 -c -o $@ $<\n' >Makefile
make -s -j2
./project
