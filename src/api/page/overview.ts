/** What all operations have in common: keys, headers, pages, problems, limits, quotas and settings. */

import { errorKinds } from '../../base/errors.ts';
import { expressionLengthMax } from '../../expressions/engine.ts';
import { bodyBytesMax } from '../../http/protocol/body.ts';
import { bodyNestingMax } from '../../http/protocol/nesting.ts';
import { cursorLengthMax } from '../../keys/cursor.ts';
import { permissions } from '../../rules/permissions.ts';
import { formatQuota, type QuotaName, quotaRows, settingRows } from '../../rules/settings.ts';
import {
  dataLengthMax,
  metadataKeysMax,
  searchIndexesLengthMax,
} from '../../tokens/contents/contents.ts';
import { queryLengthMax } from '../../tokens/search/search-query.ts';
import type { Document } from './document.ts';
import { block, code, type Html, heading, html, inline, prose, table } from './html.ts';
import { preludesOf } from './samples.ts';

export function authenticationSection({ components }: Document): Html {
  const keyHeader = components.securitySchemes.key.name;
  const preludes = preludesOf(keyHeader);
  return html`${heading(2, 'authentication', 'Authentication')}
${prose(`Every request carries a key in the header \`${keyHeader}\`. A missing, unknown or deleted key is a 401.`)}
${table(
  'Kinds of keys',
  ['Kind', 'For'],
  Object.entries(kinds).map(([kind, use]) => [code(kind), use]),
)}
<h3>Before the examples</h3>
${block(preludes.curl)}
<details><summary>TypeScript</summary>${block(preludes.typescript)}</details>
<details><summary>Python</summary>${block(preludes.python)}</details>
${heading(3, 'permissions', 'Permissions')}
${prose(
  'An application holds permissions as such, or in access rules that say for which tokens and with which transform. ' +
    'The transform below applies without a rule.',
)}
${table(
  'Permissions',
  ['Permission', 'Allows to', 'Kinds of keys', 'Transform'],
  Object.entries(permissions).map(([name, { description, kinds, impliedTransform }]) => [
    code(name),
    description,
    kinds.join(', '),
    impliedTransform ?? '',
  ]),
)}`;
}

const kinds = {
  private: 'servers: tokens, by rules and permissions',
  public:
    'pages and apps, where anybody can read it: creating and changing tokens, creating sessions',
  management: 'administration: applications, proxies, logs, the tenant; no data of tokens',
  session: 'one page or app for some minutes, once a private key has authorized it',
};

export function conventionsSection({ components }: Document): Html {
  const { IdempotencyKey, TraceId } = components.parameters;
  const headers = [IdempotencyKey, TraceId].flatMap((one) =>
    one ? [[code(one.name), inline(one.description)]] : [],
  );
  return html`${heading(2, 'requests', 'Requests and responses')}
${prose(
  'Bodies are JSON in UTF-8, without compression. A PATCH is a JSON merge patch (RFC 7396) of the media type ' +
    '`application/merge-patch+json`. Unknown attributes are refused, so that a misspelled one is not ignored. ' +
    'Instants are ISO 8601 with an offset. A slash at the end of a path changes nothing.',
)}
${table('Headers of any request', ['Header', 'Meaning'], headers)}
${heading(3, 'pagination', 'Pages')}
${prose(
  'Lists are newest first. By cursor: send `pagination.next` of a response as `start` of the next request until it ' +
    'is absent; every item that is there all the time comes exactly once. By number: send `page`; a page past the ' +
    'end is empty.',
)}
${heading(3, 'problems', 'Problems')}
${prose(
  'What is refused or fails is a problem document (RFC 9457) of the media type `application/problem+json`. Its ' +
    '`type` is for programs, its `detail` for people, and `errors` has messages by attribute. It never repeats a ' +
    'value.',
)}
${problemsTable()}`;
}

function problemsTable(): Html {
  return table(
    'Types of problems',
    ['Type', 'Status', 'Title'],
    Object.entries(errorKinds).map(([name, { status, title }]) => [
      html`<code id="problem-${name}">urn:strongroom:problem:${name}</code>`,
      code(String(status)),
      title,
    ]),
  );
}

export function limitsSection(): Html {
  return html`${heading(2, 'limits', 'Limits, quotas and settings')}
${table(
  'Limits',
  ['What', 'At most'],
  limits.map(([what, most]) => [what, most.toLocaleString('en')]),
)}
${heading(3, 'quotas', 'Quotas')}
${prose('The operator sets them for each tenant: `strongroom tenant quota`.')}
${table(
  'Quotas',
  ['Quota', 'Meaning', 'Default', 'From', 'To'],
  Object.entries(quotaRows).map(([name, row]) => [
    code(name),
    row.meaning,
    ...[row.default, row.min, row.max].map((value) => formatQuota(name as QuotaName, value)),
  ]),
)}
${heading(3, 'settings', 'Settings')}
${prose('A management key changes them: `PUT /tenants/self`. They are texts.')}
${table(
  'Settings',
  ['Setting', 'Default'],
  Object.entries(settingRows).map(([name, row]) => [
    code(name),
    row.default === '' ? 'empty' : code(row.default),
  ]),
)}`;
}

const limits: readonly (readonly [string, number])[] = [
  ['bytes of a body, or of a line of a bulk body', bodyBytesMax],
  ['levels of nesting of a body', bodyNestingMax],
  ['characters of the data of a token, as JSON', dataLengthMax],
  ['names in metadata', metadataKeysMax],
  ['characters of all search indexes of a token', searchIndexesLengthMax],
  ['characters of an expression', expressionLengthMax],
  ['characters of a search query', queryLengthMax],
  ['characters of a cursor', cursorLengthMax],
];
