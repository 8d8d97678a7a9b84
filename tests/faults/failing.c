/* Loaded before everything else, this makes one call fail that would change something below a folder.

   Calls are counted in the whole process, whoever makes them: Python, Arrow, SQLite or delta-rs. The one that fails has
   done half of its work if it writes, and nothing otherwise. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static size_t length;
static atomic_long seen, wanted;
static int number;
static char failed[PATH_MAX + 64];

/* The k-th call from now on fails with this errno; none if k is 0. */
void rv_arm(const char *root, long k, int with)
{
    atomic_store(&wanted, 0);
    length = strlen(strncpy(folder, root, sizeof folder - 1));
    failed[0] = 0;
    number = with;
    atomic_store(&seen, 0);
    atomic_store(&wanted, k);
}

long rv_seen(void) { return atomic_load(&seen); }
const char *rv_failed(void) { return failed; }

static int due(const char *call, const char *path)
{
    if (!length || path[0] != '/' || strncmp(path, folder, length))
        return 0;
    if (atomic_fetch_add(&seen, 1) + 1 != atomic_load(&wanted))
        return 0;
    snprintf(failed, sizeof failed, "%s %s", call, path + length);
    return 1;
}

static int due_at(const char *call, int where, const char *path)
{
    char link[64], full[2 * PATH_MAX];
    if (path[0] == '/')
        return due(call, path);
    if (where == AT_FDCWD)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", where);
    ssize_t n = readlink(link, full, PATH_MAX - 1);
    if (n < 0)
        return 0;
    snprintf(full + n, sizeof full - n, "/%s", path);
    return due(call, full);
}

static int due_file(const char *call, int file)
{
    char link[64], path[PATH_MAX];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = before;
    if (n < 0)
        return 0;
    path[n] = 0;
    return due(call, path);
}

#define FAIL return errno = number, -1
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRITES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))
#define MODE(flags, last)                                  \
    mode_t mode = 0;                                       \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {               \
        va_list more;                                      \
        va_start(more, last);                              \
        mode = va_arg(more, mode_t);                       \
        va_end(more);                                      \
    }

#define OPEN(name)                                         \
    int name(const char *path, int flags, ...)             \
    {                                                      \
        MODE(flags, flags)                                 \
        if (WRITES(flags) && due("open", path))            \
            FAIL;                                          \
        return REAL(name)(path, flags, mode);              \
    }
#define OPENAT(name)                                       \
    int name(int where, const char *path, int flags, ...)  \
    {                                                      \
        MODE(flags, flags)                                 \
        if (WRITES(flags) && due_at("open", where, path))  \
            FAIL;                                          \
        return REAL(name)(where, path, flags, mode);       \
    }
#define PWRITE(name, offset_type)                                              \
    ssize_t name(int file, const void *data, size_t size, offset_type offset) \
    {                                                                          \
        if (due_file("write", file)) {                                         \
            REAL(name)(file, data, size / 2, offset);                          \
            FAIL;                                                              \
        }                                                                      \
        return REAL(name)(file, data, size, offset);                           \
    }
#define ON_FILE(name, call, parameters, ...)               \
    int name parameters                                    \
    {                                                      \
        if (due_file(call, file))                          \
            FAIL;                                          \
        return REAL(name)(__VA_ARGS__);                    \
    }
#define ON_PATH(name, call, path, parameters, ...)         \
    int name parameters                                    \
    {                                                      \
        if (due(call, path))                               \
            FAIL;                                          \
        return REAL(name)(__VA_ARGS__);                    \
    }
#define ON_PLACE(name, call, where, path, parameters, ...) \
    int name parameters                                    \
    {                                                      \
        if (due_at(call, where, path))                     \
            FAIL;                                          \
        return REAL(name)(__VA_ARGS__);                    \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t write(int file, const void *data, size_t size)
{
    if (due_file("write", file)) {
        REAL(write)(file, data, size / 2);
        FAIL;
    }
    return REAL(write)(file, data, size);
}

ssize_t writev(int file, const struct iovec *data, int count)
{
    if (due_file("write", file))
        FAIL;
    return REAL(writev)(file, data, count);
}

ON_FILE(fsync, "sync", (int file), file)
ON_FILE(fdatasync, "sync", (int file), file)
ON_FILE(ftruncate, "truncate", (int file, off_t size), file, size)
ON_FILE(ftruncate64, "truncate", (int file, off64_t size), file, size)
ON_PATH(rename, "rename", to, (const char *from, const char *to), from, to)
ON_PATH(link, "link", to, (const char *from, const char *to), from, to)
ON_PLACE(linkat, "link", in, to, (int at, const char *from, int in, const char *to, int flags), at, from, in, to, flags)
ON_PLACE(renameat, "rename", in, to, (int at, const char *from, int in, const char *to), at, from, in, to)
ON_PATH(mkdir, "mkdir", path, (const char *path, mode_t mode), path, mode)
ON_PLACE(mkdirat, "mkdir", where, path, (int where, const char *path, mode_t mode), where, path, mode)
ON_PATH(unlink, "unlink", path, (const char *path), path)
ON_PLACE(unlinkat, "unlink", where, path, (int where, const char *path, int flags), where, path, flags)
ON_PATH(rmdir, "rmdir", path, (const char *path), path)
