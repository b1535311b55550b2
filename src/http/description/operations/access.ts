/** Operations on applications, keys, sessions, and what they are allowed to do. */
import { idOf, type Section } from './operation-row.ts';

const application = idOf(3);
const key = idOf(4);
const clientKey = idOf(5);
const session = idOf(10);
const webPage = idOf(11);
const webPageKey = idOf(12);
/** “Full Access”. */
const template = '6f486ec1-ddf4-4040-b7f1-3ddca4209495';
const keyText = 'key_test_pvt_…';

const rule = {
  description: 'Support sees the last four digits',
  priority: 1,
  container: '/pci/',
  permissions: ['token:read'],
  transform: 'mask',
};

export const applications: Section = {
  tag: 'Applications',
  description:
    'An application is a program that uses the vault. Its type says where its keys may be, its rules what they may do.',
  operations: {
    'POST /applications': {
      id: 'createApplication',
      description: 'The key is in this response and in no later one.',
      example: {
        body: { name: 'Support desk', type: 'private', rules: [rule] },
        reply: {
          id: application,
          name: 'Support desk',
          type: 'private',
          key: keyText,
          rules: [rule],
        },
      },
    },
    'GET /applications': {
      id: 'listApplications',
      example: { query: { id: application }, reply: { pagination: { total_items: 1 } } },
    },
    'GET /applications/key': { id: 'getOwnApplication', example: {} },
    'GET /applications/:id': {
      id: 'getApplication',
      example: { params: { id: application }, reply: { id: application, name: 'Support desk' } },
    },
    'PUT /applications/:id': {
      id: 'updateApplication',
      description: 'Permissions and rules that are absent are taken away.',
      example: {
        params: { id: application },
        body: { name: 'Support', rules: [{ ...rule, transform: 'redact' }] },
        reply: { id: application, name: 'Support' },
      },
    },
    'POST /applications/:id/keys': {
      id: 'createKey',
      description:
        'The key is in this response and in no later one. An application has at most three keys.',
      problems: ['unprocessable'],
      example: { params: { id: application }, reply: { id: key, key: keyText } },
    },
    'GET /applications/:id/keys': {
      id: 'listKeys',
      example: { params: { id: application }, query: { id: key }, reply: [{ id: key }] },
    },
    'GET /applications/:id/keys/:keyId': {
      id: 'getKey',
      example: { params: { id: application, keyId: key }, reply: { id: key } },
    },
    'DELETE /applications/:id/keys/:keyId': {
      id: 'deleteKey',
      example: { params: { id: application, keyId: key } },
    },
    'POST /applications/:id/regenerate': {
      id: 'regenerateKey',
      problems: ['gone'],
      example: { params: { id: application }, status: 410 },
    },
    'POST /access/explain': {
      id: 'explainAccess',
      description:
        'Nothing of the token is shown. Give an `application_id` or a `key_id`. For `token:use`, `proxy:invoke` and ' +
        '`reactor:invoke`, `shown` is `plaintext` whatever the transform: the value goes whole to destinations and ' +
        'code that an administrator wrote, and may come back to the caller through them.',
      problems: ['not_found'],
      example: {
        body: { application_id: application, permission: 'token:read', container: '/pci/high/' },
        reply: { allowed: true, decided_by: 'rule', transform: 'redact', shown: 'nothing' },
      },
    },
    'DELETE /applications/:id': {
      id: 'deleteApplication',
      example: { params: { id: application } },
    },
    'GET /permissions': {
      id: 'listPermissions',
      example: { query: { application_type: 'public' } },
    },
    'GET /application-templates': { id: 'listApplicationTemplates', example: {} },
    'GET /application-templates/:id': {
      id: 'getApplicationTemplate',
      example: { params: { id: template }, reply: { id: template, name: 'Full Access' } },
    },
  },
};

export const sessions: Section = {
  tag: 'Sessions',
  description:
    'How a page or an app shows a value for some minutes: it creates a session with its public key, and its server ' +
    'authorizes the nonce with a private key.',
  operations: {
    'POST /sessions': {
      id: 'createSession',
      example: {
        reply: {
          session_key: 'key_test_ses_…',
          nonce: 'Nonce0000000000000000000000000000',
          expires_at: '2026-01-31T09:33:00.000+00:00',
        },
      },
    },
    'GET /sessions': {
      id: 'listSessions',
      description:
        'Sessions that have not expired, and of which the keys still exist that created and authorized them.',
      example: {
        reply: {
          pagination: { total_items: 1 },
          data: [
            {
              id: session,
              application_id: webPage,
              created_by_key: webPageKey,
              permissions: [],
              rules: [],
            },
          ],
        },
      },
    },
    'POST /sessions/authorize': {
      id: 'authorizeSession',
      description: 'A nonce can be used once. Give `permissions`, `rules`, or both.',
      problems: ['not_found'],
      example: {
        body: {
          nonce: 'Nonce0000000000000000000000000000',
          rules: [
            { priority: 1, container: '/pci/', permissions: ['token:read'], transform: 'mask' },
          ],
        },
      },
    },
    'DELETE /sessions/:id': {
      id: 'deleteSession',
      description: 'Its key is refused with 401 from then on, on every server within a second.',
      example: { params: { id: session } },
    },
  },
};

export const clientKeys: Section = {
  tag: 'Encryption keys',
  description: 'Keys by which clients encrypt what only the vault can decrypt.',
  operations: {
    'POST /keys': {
      id: 'createEncryptionKey',
      problems: ['unprocessable'],
      example: {
        body: {},
        reply: { id: clientKey, public_key_pem: '-----BEGIN PUBLIC KEY-----…' },
      },
    },
    'GET /keys': { id: 'listEncryptionKeys', example: { reply: [{ id: clientKey }] } },
    'GET /keys/:id': {
      id: 'getEncryptionKey',
      example: { params: { id: clientKey }, reply: { id: clientKey } },
    },
    'DELETE /keys/:id': { id: 'deleteEncryptionKey', example: { params: { id: clientKey } } },
  },
};
