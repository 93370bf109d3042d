# shellcheck shell=bash
# Starts an emulated machine. Sourced by the other scripts.

# Emulated everywhere, so that a guest is the same machine on every host. Its CPUs take turns on one real
# CPU: running together, a lock holder would be preempted by those that wait for it. The processor is an Intel
# one because those show siblings and dies without further ado, and of a level below the
# table of dies (1Fh), at which QEMU 10 gives up; caches are distinguished all the same.
ENGINE=(-accel "tcg,thread=single" -cpu "max,vendor=GenuineIntel,level=13,la57=off")
# With these, time in the guest is the number of instructions that its CPUs have executed (2 ns for each), and
# jumps ahead where all of them wait. Nothing of the host comes in: its clock, its chance, how busy it is.
COUNTED=(-icount "shift=1,sleep=off" -rtc "base=2026-01-01T00:00:00,clock=vm" -seed 1)
# The clock is said to be reliable because the kernel would otherwise take a slow one; self-tests,
# address randomisation and mitigations only cost time here.
WORDS="console=ttyS0 quiet panic=-1 tsc=reliable cryptomgr.notests nokaslr mitigations=off"

# What the guest says on its serial line: emulate SECONDS INITRD WORDS MACHINE...
emulate() {
    local limit=$1 initrd=$2 words=$3; shift 3
    timeout --kill-after=5 "$limit" qemu-system-x86_64 "${ENGINE[@]}" "$@" \
        -kernel "$GUEST/${KERNEL:-vmlinuz}" -initrd "$initrd" -append "$WORDS $words" \
        -nodefaults -display none -serial stdio -no-reboot </dev/null | sed -u "s/\r//"
}
