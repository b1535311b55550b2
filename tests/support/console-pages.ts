/** Pages of the console in a browser, for tests. */
import type { BrowserContext, Page } from 'playwright-core';
import { createAdministratorLink } from '../../src/access/people/links.ts';
import { perform } from '../../src/rules/operation.ts';
import type { TestTenant } from './tenant.ts';

/** Under load on few cores, a page may wait for its turn. */
const patienceMs = 60_000;

/** The code of a link for the administrator, as the operator's command prints it. */
export async function administratorCode({ id, vault: { running } }: TestTenant): Promise<string> {
  const { vault } = running;
  const tenant = await vault.tenants.find(id);
  if (!tenant) throw new Error('the tenant is gone');
  const operator = { tenant, application: null };
  const linking = createAdministratorLink(vault, operator);
  const { body } = await perform({ store: vault.store, actor: operator }, linking);
  return (body as { readonly code: string }).code;
}

export interface WatchedPage {
  readonly page: Page;
  /** What the page said that it should not: errors, refused scripts, dialogs. */
  readonly complaints: string[];
}

export async function newWatchedPage(context: BrowserContext): Promise<WatchedPage> {
  const page = await context.newPage();
  page.setDefaultTimeout(patienceMs);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', (dialog) => complaints.push(`dialog ${dialog.message()}`));
  page.on('console', (message) => {
    // Before signing in, the session is asked for and there is none.
    if (message.type() === 'error' && !/status of 40[134]/.test(message.text())) {
      complaints.push(message.text());
    }
  });
  return { page, complaints };
}

/** The first button of that name. */
export function button(page: Page, name: string) {
  return page.getByRole('button', { name, exact: true }).first();
}
