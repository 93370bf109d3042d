#!/bin/sh
# Simulates a box of water with GROMACS, for so many steps. make-water.sh makes the box.
set -eu
cpus=$(getconf _NPROCESSORS_ONLN)
water=$PWD/water.tpr
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
gmx -quiet -nobackup mdrun -s "$water" -deffnm run -nsteps "$1" -ntmpi 1 -ntomp "${OMP_NUM_THREADS:-$cpus}" -pin off 2>run.err ||
    { cat run.err >&2; exit 1; }
grep -q "Finished mdrun" run.log && echo "gromacs ok"
