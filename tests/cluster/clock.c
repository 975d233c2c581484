/* A node's own time of day: the machine's, plus an offset in seconds that a file holds. Preloaded
   before the C library into every program of the node. Monotonic clocks are left alone. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void)
{
    const char *told = getenv("CLOCK_FILE");
    char text[24] = "";
    int before = errno, file = open(told ? told : CLOCK_FILE, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) < 0)
            text[0] = 0;
        close(file);
    }
    errno = before;
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long status = syscall(SYS_clock_gettime, clock, now);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += offset();
    return status;
}

int gettimeofday(struct timeval *now, void *zone)
{
    long status = syscall(SYS_gettimeofday, now, zone);
    if (status == 0)
        now->tv_sec += offset();
    return status;
}

time_t time(time_t *now)
{
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    if (now)
        *now = read.tv_sec;
    return read.tv_sec;
}
