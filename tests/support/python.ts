/** The Python of this machine, where it has what the client needs. */
import { spawnSync } from 'node:child_process';

export const pythonVariable = 'TEST_PYTHON';
/** Of a run, that of `python-environment.ts`, unless another one is named. */
export const python = process.env[pythonVariable] ?? 'python3';

/** The reason to skip a test, or false. */
export const withoutPython = without('httpx');
/** The same for a test of offline verification. */
export const withoutCryptography = without('httpx', 'cryptography');

function without(...packages: readonly string[]): string | false {
  const program = `import ${packages.join(', ')}, sys; assert sys.version_info >= (3, 10)`;
  const { status } = spawnSync(python, ['-c', program]);
  return status === 0 ? false : `not here: a Python with ${packages.join(' and ')} (${python})`;
}
