#!/bin/sh
# Runs ring.c with two ranks of Open MPI, each free to run on every CPU.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpirun --use-hwthread-cpus --bind-to none -np 2 ./ring "$1"
