/* Loaded before the C library: a file system that has no locks. */
#include <errno.h>
#include <sys/file.h>

int flock(int file, int operation) {
  (void)file;
  (void)operation;
  errno = ENOLCK;
  return -1;
}
