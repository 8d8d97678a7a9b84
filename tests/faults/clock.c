/* Loaded before everything else, this sets the system's clock as one process sees it: stepped by seconds, or frozen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

static long step;
static int frozen;
static struct timespec at;

int clock_gettime(clockid_t which, struct timespec *now)
{
    int answer = ((__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime"))(which, now);
    if (!answer && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) {
        if (frozen)
            *now = at;
        now->tv_sec += step;
    }
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where)
{
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (where)
        *where = found.tv_sec;
    return found.tv_sec;
}

void rv_clock(long seconds, int stands)
{
    frozen = 0;
    step = 0;
    clock_gettime(CLOCK_REALTIME, &at);
    step = seconds;
    frozen = stands;
}
