/** The Python of this machine, where it has what the client needs. */
import { spawnSync } from 'node:child_process';

/** Another one than that of the machine may be named. */
export const python = process.env['TEST_PYTHON'] ?? 'python3';

const { status } = spawnSync(python, [
  '-c',
  'import httpx, sys; assert sys.version_info >= (3, 10)',
]);

/** The reason to skip a test, or false. */
export const withoutPython = status === 0 ? false : `not here: a Python with httpx (${python})`;
