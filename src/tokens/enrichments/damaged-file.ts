/** A file of the operator that cannot be used, and the line that says so. */

/** The message names the line and its error, and quotes nothing. */
export class DamagedFileError extends Error {
  readonly line: number;

  constructor(line: number, problem: string) {
    super(`line ${line} ${problem}`);
    this.name = 'DamagedFileError';
    this.line = line;
  }
}
