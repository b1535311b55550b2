/** Lines from standard input that nobody looking at the terminal shall read. */
import type { Terminal } from './terminal.ts';

const lineBytesMax = 1024;

/** Ctrl-C and Ctrl-D, which a terminal in raw mode gives as characters. */
const endings = [3, 4].map((code) => String.fromCharCode(code));

/**
 * Lines that are not empty, until the caller stops, the input ends, or the terminal sends Ctrl-C or Ctrl-D. A terminal
 * does not show them.
 * @param prompt written to a terminal before each line.
 */
export async function* secretLines(
  { stdin, stderr }: Terminal,
  prompt: () => string,
): AsyncGenerator<string, void> {
  const isTerminal = stdin.isTTY === true;
  const ask = () => isTerminal && stderr.write(prompt());
  if (isTerminal) stdin.setRawMode?.(true);
  let text = '';
  try {
    ask();
    for await (const chunk of stdin) {
      text += String(chunk);
      if (isTerminal && endings.some((one) => text.includes(one))) return;
      const lines = text.split(/[\r\n]+/);
      text = lines.pop() ?? '';
      for (const line of lines.filter((one) => one.trim() !== '')) {
        if (isTerminal) stderr.write('\n');
        yield line;
        ask();
      }
      if (text.length > lineBytesMax) return;
    }
    if (text.trim() !== '') yield text;
  } finally {
    if (isTerminal) {
      stdin.setRawMode?.(false);
      stderr.write('\n');
    }
  }
}
