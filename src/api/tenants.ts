/** The caller's own tenant. */
import Type from 'typebox';
import {
  type ActivityPeriod,
  type ActivityReporting,
  activityPeriods,
  reportActivity,
} from '../access/activity/report.ts';
import { deleteTenant } from '../access/tenants/delete.ts';
import { nearQuotas, oldKeys, stuckRotations, unusedKeys } from '../access/tenants/problems.ts';
import { readTenant, type TenantReading } from '../access/tenants/read.ts';
import { updateTenant } from '../access/tenants/update.ts';
import { reportUsage } from '../access/tenants/usage-report.ts';
import { alteredLog, alteredRows, unverifiedLog } from '../audit/problems.ts';
import { endingCertificates } from '../proxies/problems.ts';
import { type ProblemCheck, problemKinds, problemReports } from '../rules/tenant-problems.ts';
import { failingWebhooks } from '../webhooks/problems.ts';
import { operation, type Resource } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import { mapOf, name, nullable, shared, strict, text, textMap, timestamp } from './shapes.ts';

const { id, created_at, modified_by, modified_at } = shared;

const settings = attribute(textMap, 'Texts by name; see Settings.');

const tenant = object(
  {
    id,
    name: shared.name,
    type: attribute(text, '`test` or `production`.'),
    settings,
    quotas: attribute(
      mapOf(Type.Integer()),
      'What the operator allows; see Quotas. Durations are milliseconds.',
    ),
    created_at,
    modified_by,
    modified_at,
  },
  { title: 'Tenant' },
);

const tenantUpdate = object(
  { name, settings: attribute(nullable(textMap), settings) },
  { ...strict, title: 'TenantUpdate' },
);

const totalTokens = attribute(Type.Integer(), 'How many tokens there are.');

const tokensOfType = object({
  count: attribute(Type.Integer(), 'How many there are.'),
  last_created_at: attribute(timestamp, 'When the last one was created.'),
});

const tokenReport = object({
  total_tokens: totalTokens,
  monthly_active_tokens: attribute(Type.Integer(), 'Tokens created since the month began, in UTC.'),
  metrics_by_type: attribute(mapOf(tokensOfType), 'Tokens by type.'),
});

const storage = object({
  stored_bytes: attribute(Type.Integer(), 'Bytes that count against the quota token_storage.'),
  by_application: attribute(
    mapOf(Type.Integer()),
    'By the id of each application, the bytes of its tokens, token intents, sessions and stored responses. ' +
      'Those of a public application count against the quota public_application_storage.',
  ),
});

const usageReport = object(
  {
    total_tokens: totalTokens,
    token_report: attribute(tokenReport, 'Tokens in numbers.'),
    storage: attribute(
      Type.Optional(storage),
      'What is stored in bytes; absent where nothing ever was.',
    ),
  },
  { title: 'UsageReport' },
);

const count = (meaning: string) => attribute(Type.Integer(), meaning);
const milliseconds = Type.Union([Type.Integer(), Type.Null()]);
const timeOrNull = Type.Union([timestamp, Type.Null()]);

const activityPoint = object({
  at: attribute(timestamp, 'When its span began. It lasts for `step_seconds`.'),
  requests: count('Requests with a valid key.'),
  failed: count('Those that the vault failed to handle.'),
  refused: count('What the log has as denied or failed.'),
  revealed: count('Values that were shown in plaintext.'),
  latency_ms: attribute(
    object({
      median: attribute(milliseconds, 'Half of the responses took at most so long.'),
      p95: attribute(milliseconds, '95 of 100 responses took at most so long.'),
    }),
    'Upper bounds, in milliseconds. Null without requests.',
  ),
});

const signedLog = object({
  signed_since: attribute(timeOrNull, 'When the first checkpoint was signed.'),
  signed_at: attribute(timeOrNull, 'When the latest one was signed.'),
});

const activityReport = object(
  {
    period: attribute(Type.Enum(Object.keys(activityPeriods)), 'As requested.'),
    since: attribute(timestamp, 'When the first point began.'),
    until: attribute(timestamp, 'When the last point ends, which is under way.'),
    step_seconds: attribute(Type.Integer(), 'From one point to the next.'),
    points: attribute(Type.Array(activityPoint), 'The oldest first.'),
    revealed_by_application: attribute(
      mapOf(Type.Integer()),
      'Values that were revealed in the period, by the id of the application. `*` stands for further ones.',
    ),
    log: attribute(signedLog, 'Since when checkpoints prove the log.'),
    last_backup_at: attribute(
      timeOrNull,
      'When the vault was last backed up by its own command, as far as the server knows.',
    ),
  },
  { title: 'ActivityReport' },
);

const problem = object(
  {
    kind: attribute(Type.Enum([...problemKinds]), 'What kind of problem it is.'),
    severity: attribute(
      Type.Enum(['warning', 'problem']),
      '`problem` for what does not work now, `warning` for what soon may not.',
    ),
    message: attribute(text, 'What is wrong.'),
    advice: attribute(text, 'How to fix it.'),
    entity_type: attribute(text, 'What it is about, as the log names it.'),
    entity_id: attribute(text, 'The id of that.'),
  },
  { title: 'TenantProblem' },
);

const problemReport = object(
  {
    problems: attribute(Type.Array(problem), 'The worst first.'),
    not_checked: attribute(
      Type.Array(text),
      'The permissions that the application would need for the other checks.',
    ),
  },
  { title: 'ProblemReport' },
);

type TenantReporting = TenantReading & ActivityReporting & { readonly keyMaxAgeMs: number };

/** What is looked at, in the order in which equally bad problems are listed. */
const checks: readonly ProblemCheck<TenantReporting>[] = [
  alteredRows,
  alteredLog,
  unverifiedLog,
  failingWebhooks,
  endingCertificates,
  stuckRotations,
  oldKeys,
  nearQuotas,
  unusedKeys,
];

export const tenants: Resource<TenantReporting> = {
  tag: 'Tenant',
  description:
    'The tenant of the calling key: its name, its settings, and what the operator allows it.',
  operations: (tools) => {
    const reports = problemReports(tools, checks);
    return [
      operation({
        id: 'getTenant',
        method: 'GET',
        path: '/tenants/self',
        summary: 'Read the tenant, its settings and its quotas',
        permission: 'tenant:read',
        tagged: true,
        reply: { status: 200, body: tenant },
        example: {},
        handle: ({ caller }) => readTenant(tools, caller),
      }),
      operation({
        id: 'updateTenant',
        method: 'PUT',
        path: '/tenants/self',
        summary: 'Rename the tenant and change some of its settings',
        description: 'Settings that are absent stay.',
        permission: 'tenant:update',
        tagged: true,
        body: tenantUpdate,
        reply: { status: 200, body: tenant },
        example: {
          body: { name: 'Shop', settings: { deduplicate_tokens: 'true' } },
          reply: { name: 'Shop', settings: { deduplicate_tokens: 'true' } },
        },
        handle: ({ caller, body }) => updateTenant(tools, caller, body),
      }),
      operation({
        id: 'getUsage',
        method: 'GET',
        path: '/tenants/self/reports/usage',
        summary: 'Count the tokens of the tenant',
        permission: 'report:read',
        reply: { status: 200, body: usageReport },
        example: {},
        handle: ({ caller }) => reportUsage(tools, caller),
      }),
      operation({
        id: 'getActivity',
        method: 'GET',
        path: '/tenants/self/reports/activity',
        summary: 'Show what the callers of the tenant did',
        description:
          'Requests, refusals, revealed values, and latency: of the last hour by minutes, of the last day by hours, ' +
          'or of the last 30 days by days. All servers count together. The last minute may not be counted yet.',
        permission: 'report:read',
        query: object(
          {
            period: attribute(
              Type.Optional(Type.Enum(Object.keys(activityPeriods))),
              '`day` unless given.',
            ),
          },
          strict,
        ),
        reply: { status: 200, body: activityReport },
        example: { query: { period: 'hour' }, reply: { period: 'hour', step_seconds: 60 } },
        handle: ({ caller, query }) =>
          reportActivity(tools, caller, (query.period ?? 'day') as ActivityPeriod),
      }),
      operation({
        id: 'getProblems',
        method: 'GET',
        path: '/tenants/self/reports/problems',
        summary: 'List what needs attention in the tenant',
        description:
          'Altered rows, disabled webhooks, failed deliveries, certificates that end, rotations that are stuck, old ' +
          'or unused keys, and nearly used quotas. Each needs the permission to read what it is about.',
        permission: 'report:read',
        reply: { status: 200, body: problemReport },
        example: {},
        handle: ({ caller }) => reports(caller),
      }),
      operation({
        id: 'deleteTenant',
        method: 'DELETE',
        path: '/tenants/self',
        summary:
          'Delete the tenant and destroy its keys, so that none of its data can be read again',
        description: 'This cannot be undone.',
        permission: 'tenant:delete',
        tagged: true,
        reply: { status: 204 },
        example: {},
        handle: ({ caller }) => deleteTenant(tools, caller),
      }),
    ];
  },
};
