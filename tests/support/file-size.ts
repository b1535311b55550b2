/** A full disk for one process: the kernel refuses to let its files grow. */
import { execFileSync } from 'node:child_process';

/**
 * Sets the soft limit on the size of the files that a running process writes, or lifts it. The
 * process must ignore SIGXFSZ, as Node does; a write past the limit then fails with EFBIG after
 * whatever part of it still fitted, just as on a disk that fills up in the middle of a write.
 */
export function limitFileSize(pid: number, bytes: number | 'unlimited'): void {
  execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${bytes}:`]);
}
