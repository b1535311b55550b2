/** Pictures of the documents, which the tests that reach the page take, so that they are true. */
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { root } from './source.ts';

/** How letters look depends on the machine, so a run takes them only where it is asked to. */
const isWriting = process.env['TEST_PICTURES'] === 'write';

/** `docs/pictures/NAME.png`, with `TEST_PICTURES=write`. */
export async function takePicture(of: Page | Locator, name: string): Promise<void> {
  const path = join(root, 'docs', 'pictures', `${name}.png`);
  if (isWriting) await of.screenshot({ path });
}
