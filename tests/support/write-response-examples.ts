/** Writes the responses that the description shows: `npm run openapi`. A test fails where they are others. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { publishedIn } from '../../src/api/openapi/published-operation.ts';
import { engineOf } from './engines.ts';
import { runExamples } from './example-story.ts';
import { responseExamples } from './response-examples.ts';
import { root } from './source.ts';
import { newTenant } from './tenant.ts';
import { sectionsOf, startVault } from './vault.ts';

const ends: (() => void | Promise<void>)[] = [];
const lender = { after: (end: () => void | Promise<void>) => void ends.push(end) };
const vault = await startVault(lender, engineOf('sqlite'));
const operations = publishedIn(await sectionsOf(vault));
const story = await runExamples(await newTenant(vault), operations);
const file = join(root, 'src', 'api', 'openapi', 'response-examples.json');
writeFileSync(file, `${JSON.stringify(responseExamples(story), undefined, 2)}\n`);
for (const end of ends.reverse()) await end();
