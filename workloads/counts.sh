# shellcheck shell=bash
# counts.sh: the thread counts that are tried on this machine, and whether it is idle; for calibrate.sh and scale.sh.

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

# CPU time that all processes of the machine have spent, in clock ticks: all but idling and waiting for disks.
ticks_spent() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }

# Others may use so many hundredths of a CPU while something is measured.
BUSY=20

# be_idle NAME SECONDS: waits so long at most until others leave the machine alone, looking for a second each time.
be_idle() {
    local left before used
    for ((left = $2; ; left--)); do
        before=$(ticks_spent)
        sleep 1
        used=$((($(ticks_spent) - before) * 100 / $(getconf CLK_TCK)))
        ((used > BUSY)) || return 0
        ((left > 1)) || break
        ((left < $2)) || echo "$1: other programs use $used % of a CPU; waiting until they do not" >&2
    done
    echo "$1: other programs use $used % of a CPU, so nothing can be measured; end them (top shows them), and try again" >&2
    return 1
}
