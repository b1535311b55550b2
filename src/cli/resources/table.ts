/** The commands for resources: which operation each of them runs, and what its list shows. */
import type { ListedResource } from './ids.ts';

export interface ResourceCommandRow {
  /** A few words, for the list of all commands. */
  readonly title: string;
  /** The id of the operation of the API. */
  readonly operation: string;
  /** The names of the words after the command: parameters of the path, in their order, or an attribute. */
  readonly operands?: readonly string[];
  /** The resource whose ids the first of these words is, for shells to complete. */
  readonly ids?: ListedResource;
  /** The attributes that a list shows in its columns. */
  readonly columns?: readonly string[];
  /**
   * The operation that reads the resource. What an update does not name stays as it is, although the API's own update
   * replaces the whole.
   */
  readonly reads?: string;
  readonly examples: readonly string[];
}

const named = ['id', 'name', 'created_at'];
const tokenColumns = ['id', 'type', 'containers', 'data', 'created_at'];

export const resourceCommands: Readonly<Record<string, ResourceCommandRow>> = {
  'token create': {
    title: 'store a value as a token',
    operation: 'createToken',
    examples: ['--type card --data card.json', '--type token --data - --metadata order=4711'],
  },
  'token get': {
    title: 'read a token',
    operation: 'getToken',
    operands: ['id'],
    examples: ['order-4711-card', "order-4711-card --query '$.data.number'"],
  },
  'token list': {
    title: 'list tokens, newest first',
    operation: 'listTokens',
    columns: tokenColumns,
    examples: ['', '--container /pci/high/ --size 100', "--query '$.data[*].id'"],
  },
  'token search': {
    title: 'find tokens by their data, metadata or container',
    operation: 'searchTokens',
    operands: ['query'],
    columns: tokenColumns,
    examples: ["'metadata.order:4711'", "'type:card' --size 100"],
  },
  'token update': {
    title: 'change a token',
    operation: 'updateToken',
    operands: ['id'],
    examples: ['order-4711-card --metadata order=4712', 'order-4711-card --data patch.json'],
  },
  'token delete': {
    title: 'delete a token',
    operation: 'deleteToken',
    operands: ['id'],
    examples: ['order-4711-card'],
  },
  'app create': {
    title: 'create an application and its first key',
    operation: 'createApplication',
    examples: ['--name payments --type private --rules rules.json'],
  },
  'app get': {
    title: 'read an application',
    operation: 'getApplication',
    operands: ['id'],
    ids: 'app',
    examples: ['ID'],
  },
  'app list': {
    title: 'list applications',
    operation: 'listApplications',
    columns: ['id', 'name', 'type', 'permissions', 'created_at'],
    examples: ['', '--type public'],
  },
  'app update': {
    title: 'change an application',
    operation: 'updateApplication',
    operands: ['id'],
    ids: 'app',
    reads: 'getApplication',
    examples: ['ID --name checkout', 'ID --rules rules.json'],
  },
  'app delete': {
    title: 'delete an application and its keys',
    operation: 'deleteApplication',
    operands: ['id'],
    ids: 'app',
    examples: ['ID'],
  },
  'rule list': {
    title: 'list the access rules of an application',
    operation: 'getApplication',
    operands: ['id'],
    ids: 'app',
    examples: ["ID --query '$.rules[*].container'"],
  },
  'rule explain': {
    title: 'say what an application may do, and which rule decides',
    operation: 'explainAccess',
    examples: ['--application-id ID --permission token:read --token-id order-4711-card'],
  },
  'proxy create': {
    title: 'create a proxy',
    operation: 'createProxy',
    examples: ['--name provider --destination-url https://api.provider.example'],
  },
  'proxy get': {
    title: 'read a proxy',
    operation: 'getProxy',
    operands: ['id'],
    ids: 'proxy',
    examples: ['ID'],
  },
  'proxy list': {
    title: 'list proxies',
    operation: 'listProxies',
    columns: ['id', 'name', 'destination_url', 'created_at'],
    examples: [''],
  },
  'proxy update': {
    title: 'change a proxy',
    operation: 'updateProxy',
    operands: ['id'],
    ids: 'proxy',
    examples: ['ID --require-auth true'],
  },
  'proxy delete': {
    title: 'delete a proxy',
    operation: 'deleteProxy',
    operands: ['id'],
    ids: 'proxy',
    examples: ['ID'],
  },
  'reactor create': {
    title: 'create a reactor',
    operation: 'createReactor',
    examples: ['--name sign --code sign.js'],
  },
  'reactor get': {
    title: 'read a reactor',
    operation: 'getReactor',
    operands: ['id'],
    ids: 'reactor',
    examples: ['ID'],
  },
  'reactor list': {
    title: 'list reactors',
    operation: 'listReactors',
    columns: named,
    examples: [''],
  },
  'reactor update': {
    title: 'change a reactor',
    operation: 'updateReactor',
    operands: ['id'],
    ids: 'reactor',
    examples: ['ID --code sign.js'],
  },
  'reactor delete': {
    title: 'delete a reactor',
    operation: 'deleteReactor',
    operands: ['id'],
    ids: 'reactor',
    examples: ['ID'],
  },
  'reactor call': {
    title: 'run the code of a reactor in the vault',
    operation: 'react',
    operands: ['id'],
    ids: 'reactor',
    examples: ['ID --args args.json'],
  },
  'webhook create': {
    title: 'create a webhook',
    operation: 'createWebhook',
    examples: ['--name events --url https://hooks.example.com --events token.created'],
  },
  'webhook get': {
    title: 'read a webhook',
    operation: 'getWebhook',
    operands: ['id'],
    ids: 'webhook',
    examples: ['ID'],
  },
  'webhook list': {
    title: 'list webhooks',
    operation: 'listWebhooks',
    columns: ['id', 'name', 'url', 'status', 'created_at'],
    examples: [''],
  },
  'webhook update': {
    title: 'change a webhook',
    operation: 'replaceWebhook',
    operands: ['id'],
    ids: 'webhook',
    reads: 'getWebhook',
    examples: ['ID --status enabled'],
  },
  'webhook delete': {
    title: 'delete a webhook',
    operation: 'deleteWebhook',
    operands: ['id'],
    ids: 'webhook',
    examples: ['ID'],
  },
  'webhook test': {
    title: 'send a test event to a webhook',
    operation: 'testWebhook',
    operands: ['id'],
    ids: 'webhook',
    examples: ['ID'],
  },
  'session create': {
    title: 'create a session with a public key',
    operation: 'createSession',
    examples: [''],
  },
  'session authorize': {
    title: 'give a session permissions or rules',
    operation: 'authorizeSession',
    examples: ['--nonce nonce.txt --permissions token:read'],
  },
  'session list': {
    title: 'list the sessions that are alive',
    operation: 'listSessions',
    columns: ['id', 'application_id', 'authorized_by', 'expires_at'],
    examples: [''],
  },
  'session delete': {
    title: 'end a session',
    operation: 'deleteSession',
    operands: ['id'],
    ids: 'session',
    examples: ['ID'],
  },
  'approvals list': {
    title: 'list requests that wait for a person, and decisions of the last day',
    operation: 'listApprovals',
    columns: ['id', 'status', 'application_name', 'method', 'host', 'path', 'created_at'],
    examples: ['--status waiting'],
  },
  'approvals get': {
    title: 'read a request that waits for a person',
    operation: 'getApproval',
    operands: ['id'],
    ids: 'approval',
    examples: ['ID'],
  },
  'approvals approve': {
    title: 'approve a request, which is then sent',
    operation: 'approveRequest',
    operands: ['id'],
    ids: 'approval',
    examples: ['ID', 'ID --scope request'],
  },
  'approvals deny': {
    title: 'deny a request, which then fails',
    operation: 'denyRequest',
    operands: ['id'],
    ids: 'approval',
    examples: ['ID'],
  },
  'app keys list': {
    title: 'list the keys of an application',
    operation: 'listKeys',
    operands: ['id'],
    ids: 'app',
    columns: ['id', 'created_at', 'last_used_at'],
    examples: ['ID'],
  },
  'app keys create': {
    title: 'create another key of an application',
    operation: 'createKey',
    operands: ['id'],
    ids: 'app',
    examples: ['ID --json'],
  },
  'app keys delete': {
    title: 'delete a key of an application',
    operation: 'deleteKey',
    operands: ['id', 'keyId'],
    ids: 'app',
    examples: ['ID KEYID'],
  },
  'encryption-key create': {
    title: 'create a key by which clients encrypt',
    operation: 'createEncryptionKey',
    examples: ['--json'],
  },
  'encryption-key get': {
    title: 'read an encryption key',
    operation: 'getEncryptionKey',
    operands: ['id'],
    ids: 'key',
    examples: ['ID'],
  },
  'encryption-key list': {
    title: 'list encryption keys, newest first',
    operation: 'listEncryptionKeys',
    columns: ['id', 'expires_at', 'created_at'],
    examples: [''],
  },
  'encryption-key delete': {
    title: 'delete an encryption key',
    operation: 'deleteEncryptionKey',
    operands: ['id'],
    ids: 'key',
    examples: ['ID'],
  },
};
