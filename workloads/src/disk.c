/*
 * disk: threads that compute, write, and wait until the disk has it.
 *
 * Each thread computes a block, writes it to its own part of one file, waits
 * for the disk (fdatasync), and reads the block back. A program that often
 * gives its CPUs up by itself, for times that the disk decides, and that may
 * be asleep in the kernel where it cannot be stopped at once.
 *
 * The file has no name, so it vanishes with the program, however that ends.
 * It is made in TMPDIR, or else in /var/tmp, which is a disk on most systems.
 *
 * Check: what comes back must be what was written, word for word, and each
 * chain must end where the closed form says.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common.h"
#include "random.h"

#define BLOCKS_PER_SECOND 150.0 /* per thread, on a quick disk */

/* One block there or back, in as many pieces as the system likes. */
static void transfer(int file, bool write, void *block, size_t size, off_t at)
{
    char *bytes = block;
    while (size > 0) {
        ssize_t done = write ? pwrite(file, bytes, size, at) : pread(file, bytes, size, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            refused(write ? "writing the file" : "reading the file", done < 0 ? errno : EIO);
        bytes += done;
        size -= (size_t)done;
        at += done;
    }
}

static int nameless_file(void)
{
    const char *folder = getenv("TMPDIR");
    folder = folder && *folder ? folder : "/var/tmp";
    char *path = allocate(strlen(folder) + sizeof "/disk-XXXXXX", 1);
    sprintf(path, "%s/disk-XXXXXX", folder);
    int file = mkstemp(path);
    if (file < 0 || unlink(path) < 0)
        refused(path, errno);
    free(path);
    return file;
}

int main(int argc, char **argv)
{
    double kibibytes = 256, burst = 2;
    const struct knob knobs[] = {
        {"--kibibytes", &kibibytes, true, "size of a block"},
        {"--burst", &burst, false, "milliseconds of computing per block, about", .zero = true},
        {0}};
    begin(argc, argv, "disk", "OpenMP threads that write to a file and wait for the disk", knobs);

    int file = nameless_file();
    size_t size = (size_t)kibibytes * 1024;
    int64_t words = (int64_t)(size / sizeof(uint64_t));
    int64_t steps = (int64_t)(burst * 1e3 * STEPS_PER_MICROSECOND);
    int64_t turns = repetitions(work, BLOCKS_PER_SECOND);
    bool right = true;
    uint64_t checksum = 0;

#pragma omp parallel reduction(&& : right) reduction(+ : checksum)
    {
        uint64_t first = (uint64_t)omp_get_thread_num(), state = first;
        off_t at = (off_t)omp_get_thread_num() * (off_t)size;
        uint64_t *written = allocate(size, 1), *found = allocate(size, 1);
        for (int64_t turn = 0; turn < turns; turn++) {
            state = random_walk(state, steps);
            for (int64_t i = 0; i < words; i++)
                written[i] = state = random_step(state);
            transfer(file, true, written, size, at);
            if (fdatasync(file) < 0)
                refused("waiting for the disk", errno);
            /* Forgotten by the cache, it has to be read from the disk. */
            posix_fadvise(file, at, (off_t)size, POSIX_FADV_DONTNEED);
            transfer(file, false, found, size, at);
            found[0] += (uint64_t)spoilt();
            right = right && memcmp(written, found, size) == 0;
        }
        right = right && state == random_jump(first, (uint64_t)(turns * (steps + words)));
        checksum += state;
        free(written);
        free(found);
    }
    close(file);
    return report(right, checksum);
}
