/* Shifts the time of day of a process by the seconds that a file says, without the machine's clock.
 *
 *   cc -O2 -shared -fPIC -o clock_shift.so clock_shift.c
 *   CLOCK_SHIFT_FILE=shift LD_PRELOAD=./clock_shift.so python -m waygraph serve
 *
 * The file holds one double. It is mapped, so that all processes see a change at once. Monotonic clocks stay as they
 * are, as they do when the clock of a machine is set. Waits until a time of day are converted, because the kernel
 * counts them by the real clock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Later than any monotonic clock, earlier than any time of day: tells the two apart in `pthread_cond_timedwait`. */
static const time_t SINCE_2001 = 1000000000;

static volatile const double *shift;
static int (*real_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_sem_timedwait)(sem_t *, const struct timespec *);
static int (*real_mutex_timedlock)(pthread_mutex_t *, const struct timespec *);

__attribute__((constructor)) static void start(void)
{
    real_cond_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    real_sem_timedwait = dlsym(RTLD_NEXT, "sem_timedwait");
    real_mutex_timedlock = dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
    const char *path = getenv("CLOCK_SHIFT_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        shift = mapped;
}

static struct timespec shifted(struct timespec time, double sign)
{
    if (shift)
        time.tv_sec += (time_t)(sign * *shift);
    return time;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        *time = shifted(*time, 1);
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result)
        *result = now.tv_sec;
    return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct timespec real = until->tv_sec > SINCE_2001 ? shifted(*until, -1) : *until;
    return real_cond_timedwait(condition, mutex, &real);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    struct timespec real = shifted(*until, -1);
    return real_sem_timedwait(semaphore, &real);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    struct timespec real = shifted(*until, -1);
    return real_mutex_timedlock(mutex, &real);
}
