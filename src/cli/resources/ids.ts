/** The ids that shells complete: of resources that the key may list, and the names of profiles. */
import { isObject } from '../../base/json.ts';
import { UsageError } from '../terminal/command.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { visible } from '../terminal/visible.ts';
import { describedOperation } from './description.ts';
import { profileFor, readProfiles } from './profiles.ts';
import { requestVault } from './request.ts';

const listed = {
  app: 'listApplications',
  proxy: 'listProxies',
  reactor: 'listReactors',
  webhook: 'listWebhooks',
  session: 'listSessions',
  approval: 'listApprovals',
  key: 'listEncryptionKeys',
} as const;

/** What has ids to complete. Tokens are not among them: to list them is to read them. */
export type ListedResource = keyof typeof listed | 'profile';

export const listedResources = [...Object.keys(listed), 'profile'] as readonly ListedResource[];

/** Shells put it into a command line: it must be a word that means nothing else there, whatever responded. */
const idForm = /^[\w.-]{1,64}$/;

const isListed = (name: string): name is keyof typeof listed => Object.hasOwn(listed, name);

/**
 * Lines of an id and, after a tab, a name: the newest hundred.
 * @throws UsageError for anything that has no ids.
 */
export async function idLines({ env }: Pick<Terminal, 'env'>, name: string): Promise<string[]> {
  if (name === 'profile') return Object.keys(readProfiles(env).profiles);
  if (!isListed(name)) throw new UsageError(`--ids must be one of ${listedResources.join(', ')}`);
  const { method, path } = describedOperation(listed[name]);
  const response = await requestVault(profileFor(env, undefined), {
    method,
    path: `${path}?size=100`,
  });
  const list = isObject(response) ? response['data'] : response;
  return (Array.isArray(list) ? list : []).filter(isObject).flatMap((one) => {
    const { id, name: title = one['application_id'] ?? '' } = one;
    if (typeof id !== 'string' || !idForm.test(id)) return [];
    return [`${id}\t${visible(String(title))}`];
  });
}
