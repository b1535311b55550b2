/** A command that is killed by SIGKILL at an exact point of its work, which the test names. */
import { type Environment, type Finished, runProcess } from './process.ts';

/** What the process is about to do, or has just done, when it is killed. */
export type KillPoint =
  /** Before the file of an embedded database gets its place. */
  | 'before the link'
  /** It has its place, and the directory in which it was prepared is still there. */
  | 'after the link'
  /** The embedded database has committed a transaction that made a trigger which refuses writes. */
  | 'after the refusal';

const kill = "process.kill(process.pid, 'SIGKILL')";

/** Parts of a program that runs before the command's own. */
const hooks: Readonly<Record<KillPoint, string>> = {
  'before the link': `fs.linkSync = () => ${kill}`,
  'after the link': `const link = fs.linkSync; fs.linkSync = (from, to) => {
    link(from, to);
    ${kill};
  }`,
  'after the refusal': `const exec = DatabaseSync.prototype.exec; let refuses = false;
    DatabaseSync.prototype.exec = function (text) {
      const result = exec.call(this, text);
      if (/create trigger refuse_/.test(text)) refuses = true;
      if (refuses && text === 'commit') ${kill};
      return result;
    }`,
};

/** @returns once it is dead, or has ended because it never came to that point. */
export function runUntil(
  point: KillPoint,
  words: readonly string[],
  environment: Environment,
): Promise<Finished> {
  const program = `import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';
    import { DatabaseSync } from 'node:sqlite'; ${hooks[point]}; syncBuiltinESMExports();`;
  const url = `data:text/javascript,${encodeURIComponent(program)}`;
  return runProcess(words, { ...environment, NODE_OPTIONS: `--import=${url}` });
}
