/** How the clients call each operation. */

/**
 * By the name of its property: the methods of a resource, and the operation of each. The Python client is generated
 * from it; the TypeScript client has the same names in camel case.
 */
export const clientMethods: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  tokens: {
    create: 'createToken',
    get: 'getToken',
    update: 'updateToken',
    delete: 'deleteToken',
    list: 'listTokens',
    search: 'searchTokens',
    erasure: 'getTokenErasure',
  },
  token_intents: {
    create: 'createTokenIntent',
    get: 'getTokenIntent',
    delete: 'deleteTokenIntent',
  },
  applications: {
    create: 'createApplication',
    get: 'getApplication',
    current: 'getOwnApplication',
    update: 'updateApplication',
    delete: 'deleteApplication',
    list: 'listApplications',
    explain: 'explainAccess',
    permissions: 'listPermissions',
    templates: 'listApplicationTemplates',
    create_key: 'createKey',
    list_keys: 'listKeys',
    get_key: 'getKey',
    delete_key: 'deleteKey',
  },
  sessions: {
    create: 'createSession',
    authorize: 'authorizeSession',
    list: 'listSessions',
    delete: 'deleteSession',
  },
  people: {
    create: 'createPerson',
    get: 'getPerson',
    update: 'updatePerson',
    delete: 'deletePerson',
    list: 'listPeople',
    create_link: 'createSignInLink',
    sessions: 'listConsoleSessions',
    end_session: 'endConsoleSession',
    sign_in_methods: 'listSignInMethods',
    remove_sign_in_method: 'deleteSignInMethod',
  },
  proxies: {
    create: 'createProxy',
    get: 'getProxy',
    update: 'updateProxy',
    replace: 'replaceProxy',
    delete: 'deleteProxy',
    list: 'listProxies',
  },
  egress: {
    placeholder: 'createPlaceholder',
    authority: 'getEgressAuthority',
    explain: 'explainEgress',
  },
  approvals: {
    list: 'listApprovals',
    get: 'getApproval',
    approve: 'approveRequest',
    deny: 'denyRequest',
  },
  reactors: {
    create: 'createReactor',
    get: 'getReactor',
    update: 'updateReactor',
    replace: 'replaceReactor',
    delete: 'deleteReactor',
    list: 'listReactors',
    react: 'react',
    react_async: 'reactAsync',
    result: 'getReactorResult',
    logs: 'listReactorLogs',
    versions: 'listReactorVersions',
  },
  webhooks: {
    create: 'createWebhook',
    get: 'getWebhook',
    replace: 'replaceWebhook',
    delete: 'deleteWebhook',
    list: 'listWebhooks',
    rotate_secret: 'rotateWebhookSecret',
    test: 'testWebhook',
    deliveries: 'listDeliveries',
    redeliver: 'redeliver',
    replay: 'replayEvents',
    event_types: 'listEventTypes',
    public_key: 'getWebhookKey',
  },
  logs: {
    list: 'listLogs',
    entity_types: 'listLogEntityTypes',
    checkpoint: 'getLogCheckpoint',
    verification: 'verifyLog',
  },
  enrichments: { verify_bank_account: 'verifyBankAccount', card_details: 'getCardDetails' },
  encryption_keys: {
    create: 'createEncryptionKey',
    get: 'getEncryptionKey',
    list: 'listEncryptionKeys',
    delete: 'deleteEncryptionKey',
  },
  tenant: {
    get: 'getTenant',
    update: 'updateTenant',
    delete: 'deleteTenant',
    activity: 'getActivity',
    problems: 'getProblems',
    usage: 'getUsage',
    keys: 'listTenantKeys',
    rotate_key: 'rotateTenantKey',
    key_rotations: 'listTenantKeyRotations',
    pause_key_rotations: 'pauseTenantKeyRotations',
    resume_key_rotations: 'resumeTenantKeyRotations',
    destroy_key: 'destroyTenantKey',
  },
};

export interface ClientCall {
  /** From the client on, in Python's spelling. */
  readonly path: readonly string[];
  readonly pythonPath: readonly string[];
  /** It gives the items of all pages. */
  readonly isList: boolean;
  /** The TypeScript method takes the only attribute of the query itself. */
  readonly takesQueryValue: boolean;
}

/** Undefined where a client has no method for it. */
export function clientCallOf(operationId: string): ClientCall | undefined {
  const pythonPath = paths.get(operationId);
  if (pythonPath === undefined) return undefined;
  return {
    path: differing[operationId] ?? pythonPath,
    pythonPath,
    isList: lists.has(operationId),
    takesQueryValue: takesQueryValue.has(operationId),
  };
}

const paths: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ['tokenize', ['tokenize']],
  ['detokenize', ['detokenize']],
  ...Object.entries(clientMethods).flatMap(([resource, methods]) =>
    Object.entries(methods).map(([method, id]) => [id, [resource, method]] as const),
  ),
]);

/** Where the TypeScript client has another name. */
const differing: Readonly<Record<string, readonly string[]>> = {
  createKey: ['applications', 'keys', 'create'],
  listKeys: ['applications', 'keys', 'list'],
  getKey: ['applications', 'keys', 'get'],
  deleteKey: ['applications', 'keys', 'delete'],
};

const takesQueryValue = new Set(['searchTokens', 'getCardDetails']);

const lists = new Set([
  'listPeople',
  ...['listTokens', 'searchTokens', 'listApplications', 'listSessions', 'listProxies'],
  ...[
    'listReactors',
    'listReactorLogs',
    'listReactorVersions',
    'listWebhooks',
    'listDeliveries',
    'listLogs',
  ],
]);
