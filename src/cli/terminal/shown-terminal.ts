/** The terminal as commands have it: no text that they write can steer it, whoever made the text. */

import type { Terminal, TerminalOutput } from './terminal.ts';
import { escaped } from './visible.ts';

/** Of what is not shown to people, the rest may be meant so: the lines of an export must not change by a byte. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const neverMeant = /[\x00-\x08\x0b-\x1f]/g;
const steering = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}]/gu;

/** What is written as bytes is written as it is: the commands' own movements of the cursor. */
export function shownTerminal(terminal: Terminal): Terminal {
  const { stdin, stdout, stderr, env } = terminal;
  const exit = (code: number) => terminal.exit(code);
  return { stdin, stdout: shown(stdout), stderr: shown(stderr), env, exit };
}

function shown(output: TerminalOutput): TerminalOutput {
  const write = (chunk: unknown, ...others: unknown[]) => {
    const text = typeof chunk === 'string' ? textFor(output, chunk) : chunk;
    return (output.write as (...all: unknown[]) => boolean).call(output, text, ...others);
  };
  return new Proxy(output, {
    get: (target, name) => {
      if (name === 'write') return write;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function textFor({ isTTY }: TerminalOutput, text: string): string {
  return text.replace(isTTY ? steering : neverMeant, escaped);
}
