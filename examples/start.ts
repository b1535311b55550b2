/**
 * `npm run example NAME`: starts a temporary vault, a payment provider that only pretends, and a shop whose page collects
 * a card. Nothing of it is left when it ends.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDemoDestination } from '../src/cli/demo-destination.ts';
import { readConfig } from '../src/runtime/config/config.ts';
import { serve } from '../src/runtime/serve.ts';
import { exampleNames, openShop } from './shop.ts';

export interface Examples {
  /** Of the shop; the page of an example is at `/<its name>`. */
  readonly url: string;
  stop(): Promise<void>;
}

/** @param port of the shop; 0 takes one that is free. */
export async function startExamples(port: number): Promise<Examples> {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-example-'));
  const managementKey = `example.${crypto.randomUUID().replaceAll('-', '')}`;
  const provider = await startDemoDestination(directory);
  const vault = await serve(
    readConfig({
      STRONGROOM_PORT: '0',
      STRONGROOM_DATA_DIR: directory,
      STRONGROOM_LOG_LEVEL: 'warn',
      STRONGROOM_BOOTSTRAP_KEY: managementKey,
      STRONGROOM_CONSOLE: 'off',
      ...provider.environment,
    }),
  );
  const shop = await openShop({ port, vault: vault.url, managementKey, provider: provider.url });
  return {
    url: shop.url,
    stop: async () => {
      shop.close();
      await vault.stop();
      provider.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

if (import.meta.main) {
  const [name = '', port = '3000'] = process.argv.slice(2);
  if (!exampleNames.includes(name)) {
    process.stderr.write(`Name one of the examples: ${exampleNames.join(', ')}.\n`);
    process.exit(2);
  }
  const examples = await startExamples(Number(port));
  process.stdout.write(`Open ${examples.url}/${name} (Ctrl+C ends it)\n`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void examples.stop().then(() => process.exit()));
  }
}
