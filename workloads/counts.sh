# shellcheck shell=bash
# counts.sh: the thread counts that are tried on this machine; for calibrate.sh and scale.sh.

# What a user's shell has set for OpenMP must not decide what the machine can do.
unset ${!OMP_*} ${!GOMP_*}

# Prints 1 2 3 4 6 8 12 16 24 ... below the number of usable CPUs, and that number.
thread_counts() {
    local cpus count
    cpus=$(nproc)
    for ((count = 1; count < cpus; count *= 2)); do
        echo $count
        ((count == 1 || count * 3 / 2 >= cpus)) || echo $((count * 3 / 2))
    done
    echo "$cpus"
}
