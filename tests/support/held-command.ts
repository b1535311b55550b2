/** A command that stands still at an exact point of its work, which the test names, until the test lets it go on. */
import { beginHeldCommand, type Environment, type HeldCommand, heldWord } from './process.ts';
import type { Lender } from './temporary.ts';

/** What the command has sent to its databases: these texts in this order. It stops after the last one. */
const points = {
  /** A copy of a whole vault has all rows, and takes what has changed since next. */
  'once its rows are copied': ['create (?:unique )?index'],
  /** A copy that follows its source has begun to, and has copied nothing. */
  'once changes are noted': ['create (?:or replace )?trigger', 'commit'],
} as const;

export type HoldPoint = keyof typeof points;

export function beginHeld(
  t: Lender,
  point: HoldPoint,
  words: readonly string[],
  environment: Environment,
): HeldCommand {
  const program = `import fs from 'node:fs'; import net from 'node:net'; import { DatabaseSync } from 'node:sqlite';
    const texts = ${JSON.stringify(points[point])}.map((text) => new RegExp(text, 'i'));
    const after = (text) => {
      if (!texts[0]?.test(text)) return;
      texts.shift();
      if (texts.length > 0) return;
      fs.writeSync(2, '${heldWord}\\n');
      process.kill(process.pid, 'SIGSTOP');
    };
    for (const [proto, name] of [[DatabaseSync.prototype, 'exec'], [net.Socket.prototype, 'write']]) {
      const before = proto[name];
      proto[name] = function (text, ...others) {
        const result = before.call(this, text, ...others);
        after(typeof text === 'string' ? text : Buffer.from(text).toString('latin1'));
        return result;
      };
    }`;
  const url = `data:text/javascript,${encodeURIComponent(program)}`;
  return beginHeldCommand(t, words, { ...environment, NODE_OPTIONS: `--import=${url}` });
}
