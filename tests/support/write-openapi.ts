/** Writes `docs/openapi.json`: `npm run openapi`. A test fails where it differs from what a vault serves. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { engineOf } from './engines.ts';
import { root } from './source.ts';
import { startVault } from './vault.ts';

const ends: (() => void | Promise<void>)[] = [];
const lender = { after: (end: () => void | Promise<void>) => void ends.push(end) };
const vault = await startVault(lender, engineOf('sqlite'));
const { body } = await vault.send('GET', '/openapi.json');
writeFileSync(join(root, 'docs', 'openapi.json'), `${JSON.stringify(body, undefined, 2)}\n`);
for (const end of ends.reverse()) await end();
