/** Card fields for pages of others: the script that a page loads, and the frames that hold what customers type. */

import type { SigningPairs } from '../access/keyrings/signing-pairs.ts';
import { type OriginsTools, originsByKey } from '../access/origins-by-key.ts';
import { type Instant, second } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import type { OpenBrowserFiles } from '../browser/files.ts';
import { framePage } from '../browser/frame-page.ts';
import type { OpenOperation } from './declaration/operation.ts';

export interface FieldsTools extends OriginsTools {
  readonly browserFiles: OpenBrowserFiles;
  readonly signingPairs: Pick<SigningPairs, 'own'>;
  /** The service's own, such as `SVC`. */
  readonly headerPrefix: string;
  /** The release. */
  readonly version: string;
}

const text = (description: string) => ({ type: 'string', description });

const digestsSchema = {
  type: 'object',
  required: ['type', 'signed_at', 'release', 'files'],
  properties: {
    type: text('`fields.digests`: nothing else that the vault signs has it.'),
    signed_at: { ...text('When the vault signed this response.'), format: 'date-time' },
    release: text('The release of the vault.'),
    files: {
      type: 'array',
      description:
        'All that runs in a page with fields, or in their frames. ' +
        '`SVC-SIGNATURE` signs the body as it does for webhooks.',
      items: {
        type: 'object',
        required: ['name', 'path', 'integrity'],
        properties: {
          name: text('The name of the file in its release.'),
          path: text('Where this release serves it, unchanged for ever.'),
          integrity: text('Its digest, as the attribute `integrity` of an element states it.'),
        },
      },
    },
  },
};

/** A signature costs half a millisecond of processor time, and anybody may ask: those who ask together share it. */
const sharedMs = second;

interface LatestDigests {
  readonly at: Instant;
  readonly signed: ReturnType<typeof signedDigests>;
}

async function signedDigests(
  { browserFiles, signingPairs, headerPrefix, version }: FieldsTools,
  at: Instant,
) {
  const { all } = await browserFiles();
  const files = all
    .filter(({ name }) => name.startsWith('fields/'))
    .map(({ name, path, integrity }) => ({ name, path, integrity }));
  const signed_at = new Date(at).toISOString();
  const body = JSON.stringify({ type: 'fields.digests', signed_at, release: version, files });
  const pair = await signingPairs.own();
  const headers = {
    // A copy of a copy would be as old as both.
    'cache-control': 'no-store',
    [`${headerPrefix}-SIGNATURE`]: await pair.sign(Buffer.from(body)),
    [`${headerPrefix}-SIGNATURE-VERSION`]: `v${pair.pair}`,
  };
  return { body, headers };
}

export function fieldsOperations(tools: FieldsTools): readonly OpenOperation[] {
  const { browserFiles, clock, headerPrefix } = tools;
  let latest: LatestDigests | undefined;
  return [
    {
      id: 'getFieldsLoader',
      path: '/fields/v1/loader.js',
      summary: 'The script of card fields, as this release has it',
      replies: {
        200: { mediaType: 'text/javascript', schema: { type: 'string' } },
        304: undefined,
      },
      isLimited: true,
      handle: async () => {
        const { body, mediaType } = (await browserFiles()).named('fields/loader.js');
        const headers = {
          'cache-control': 'public, max-age=300',
          'cross-origin-resource-policy': 'cross-origin',
        };
        return { status: 200, body, mediaType, headers };
      },
    },
    {
      id: 'getFieldsDigests',
      path: '/fields/v1/digests.json',
      summary:
        'The signed list of SHA-384 digests of all scripts and style sheets of card fields in this release',
      replies: { 200: { mediaType: 'application/json', schema: digestsSchema } },
      isLimited: true,
      handle: async () => {
        const at = clock.now();
        if (!latest || Math.abs(at - latest.at) >= sharedMs) {
          latest = { at, signed: signedDigests(tools, at) };
        }
        try {
          return { status: 200, mediaType: 'application/json', ...(await latest.signed) };
        } catch (error) {
          latest = undefined;
          throw error;
        }
      },
    },
    {
      id: 'getFieldsFrame',
      path: '/fields/v1/frame/:key',
      summary: 'The page of one field, which listed origins may show in a frame',
      params: { key: 'The key of a public application.' },
      replies: { 200: { mediaType: 'text/html', schema: { type: 'string' } }, 304: undefined },
      problems: ['not_found'],
      isLimited: true,
      handle: async ({ key = '' }) => {
        const origins = await originsByKey(tools, key);
        if (origins)
          return { status: 200, ...framePage(await browserFiles(), { origins, headerPrefix }) };
        throw new VaultError('not_found', {
          public: 'This is not the key of a public application.',
        });
      },
    },
  ];
}
