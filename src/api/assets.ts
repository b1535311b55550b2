/** The files that pages of the vault load: scripts and style sheets, under paths that have a digest. */
import { VaultError } from '../base/errors.ts';
import type { OpenBrowserFiles } from '../browser/files.ts';
import type { OpenOperation } from './declaration/operation.ts';

/** What is at a path with a digest never changes. 400 days is the longest that browsers keep anything. */
const immutable = 'public, max-age=34560000, immutable';

export function assetOperations(files: OpenBrowserFiles): readonly OpenOperation[] {
  return [
    {
      id: 'getAsset',
      path: '/assets/:bundle/:file',
      summary: 'A script or a style sheet of a page that the vault serves',
      params: { bundle: 'The page.', file: 'The name and the digest of the file.' },
      replies: {
        200: { mediaType: 'text/javascript', schema: { type: 'string' } },
        304: undefined,
      },
      problems: ['not_found'],
      isLimited: true,
      handle: async ({ bundle, file }) => {
        const found = (await files()).at(`/assets/${bundle}/${file}`);
        if (!found) throw new VaultError('not_found', { public: 'There is no such file.' });
        const { body, mediaType } = found;
        const headers = {
          'cache-control': immutable,
          // Pages of other origins load what the vault offers them, also where they are isolated.
          'cross-origin-resource-policy': 'cross-origin',
        };
        return { status: 200, body, mediaType, headers };
      },
    },
  ];
}
