/** `strongroom demo`: a throw-away vault that shows what a vault does. */
import type { Command } from './command.ts';

export const demo: Command = {
  name: 'demo',
  summary: 'Start a throw-away vault, show what it does, and stop.',
  flags: {},
  run: async () => 0,
};
