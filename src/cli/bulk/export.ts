/** `strongroom export`: everything a key may read, as a file of lines. */
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { createPrivateFile } from '../../base/private-file.ts';
import { type Command, type Flags, printSummary, summaryFlag } from '../terminal/command.ts';
import { grouped, startProgress } from '../terminal/progress.ts';
import { ResponseError } from '../terminal/response-error.ts';
import { textLines } from './file-lines.ts';
import { clientFlags, createVaultClient, textOf, type VaultClient } from './vault-client.ts';

const filters = ['container', 'type', 'fingerprint'];

export const exportCommand: Command = {
  summary:
    'Write every token that the key may read, as the key sees it, as newline-delimited JSON. The file ' +
    'holds in plaintext what the key reveals.',
  operand: { name: 'FILE', meaning: 'file to write, mode 0600 (default: - for standard output)' },
  flags: {
    ...clientFlags,
    container: {
      kind: 'string',
      value: 'PATH',
      meaning: 'only tokens in this container and below',
    },
    type: { kind: 'string', value: 'TYPE', meaning: 'only tokens of this type' },
    fingerprint: {
      kind: 'string',
      value: 'TEXT',
      meaning: 'only tokens with this fingerprint',
    },
    json: summaryFlag,
  },
  examples: ['tokens.ndjson', 'cards.ndjson --type card --container /payments'],
  run: async (flags, terminal) => {
    const client = createVaultClient(terminal, flags);
    const file = flags['FILE'] ?? '-';
    const query = queryOf(flags);
    const progress = startProgress(
      terminal,
      'tokens',
      query === '' ? await countTokens(client) : undefined,
    );
    const { request, pendingResponse } = client.open('GET', `/tokens/export${query}`);
    request.end();
    let count = 0;
    let last = '';
    try {
      const response = await pendingResponse;
      const out = file === '-' ? terminal.stdout : createPrivateFile(String(file));
      for await (const line of textLines(response)) {
        if (!out.write(`${line}\n`)) await once(out, 'drain');
        last = line;
        count += 1;
        progress.report(count);
      }
      progress.finish();
      if (out !== terminal.stdout) await finished(out.end());
    } finally {
      // An unread response would keep the process alive.
      request.destroy();
    }
    requireWhole(last, count - 1);
    terminal.stderr.write(`${grouped(count - 1)} tokens exported.\n`);
    printSummary(terminal, flags, { exported: count - 1 });
    return 0;
  },
};

function queryOf(flags: Flags): string {
  const given = filters.flatMap((name) => {
    const value = flags[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

async function countTokens(client: VaultClient): Promise<number> {
  const { request, pendingResponse } = client.open('GET', '/tokens?size=0');
  request.end();
  const page = JSON.parse(await textOf(await pendingResponse)) as {
    pagination: { total_items: number };
  };
  return page.pagination.total_items;
}

/** @throws ResponseError when the last line is not the count of all before it. */
function requireWhole(last: string, count: number): void {
  if (last === JSON.stringify({ exported: count })) return;
  const problem =
    /^\{"problem":/.test(last) && (JSON.parse(last) as { problem: { detail: string } });
  const reason = problem ? problem.problem.detail : 'the response was cut off';
  throw new ResponseError(`the export is not complete: ${reason}`);
}
