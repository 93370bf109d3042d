#!/bin/sh
# Makes water.tpr, a box of water for GROMACS, in the current folder.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
target=$PWD
cd "$folder"
cat >water.top <<TOP
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
Water
[ molecules ]
TOP
cat >water.mdp <<MDP
integrator = md
dt = 0.001
nsteps = 1000000
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = 300
gen-vel = yes
gen-temp = 300
gen-seed = 1
constraints = h-bonds
nstcomm = 100
MDP
gmx -quiet solvate -cs spc216.gro -box 3 3 3 -p water.top -o water.gro
gmx -quiet grompp -f water.mdp -c water.gro -p water.top -o "$target/water.tpr" -maxwarn 2
