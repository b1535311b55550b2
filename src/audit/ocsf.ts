/**
 * Entries in the Open Cybersecurity Schema Framework (OCSF 1.3.0): an alert is a Detection Finding, everything else an
 * API Activity. `docs/audit.md` has the mapping.
 */
import { version as release } from '../base/installation/manifest.ts';
import { disclosureOf } from '../store/log-chain/disclosure.ts';
import type { ChainedEntry } from '../store/log-chain/entries.ts';

const schemaVersion = '1.3.0';
const product = { name: 'Strongroom', vendor_name: 'Strongroom', version: release };

const activities = {
  create: { activity_id: 1, activity_name: 'Create' },
  read: { activity_id: 2, activity_name: 'Read' },
  update: { activity_id: 3, activity_name: 'Update' },
  delete: { activity_id: 4, activity_name: 'Delete' },
} as const;

const other = 99;

const classes = {
  api: {
    ...{ category_uid: 6, category_name: 'Application Activity' },
    ...{ class_uid: 6003, class_name: 'API Activity' },
  },
  finding: {
    ...{ category_uid: 2, category_name: 'Findings' },
    ...{ class_uid: 2004, class_name: 'Detection Finding' },
  },
} as const;

const severities = {
  informational: { severity_id: 1, severity: 'Informational' },
  medium: { severity_id: 3, severity: 'Medium' },
  high: { severity_id: 4, severity: 'High' },
} as const;

/** The entry as one line of JSON. */
export function formatOcsf(entry: ChainedEntry): string {
  const event = entry.entity_type === 'alert' ? findingOf(entry) : activityOf(entry);
  return `${JSON.stringify(event)}\n`;
}

function activityOf(entry: ChainedEntry): object {
  const { entity_type, entity_id, operation, result, source, trace_id } = entry;
  const { activity_id, activity_name } = Object.hasOwn(activities, operation)
    ? activities[operation as keyof typeof activities]
    : { activity_id: other, activity_name: operation };
  const isSuccess = result === 'success';
  return {
    ...{ activity_id, activity_name },
    ...classes.api,
    type_uid: classes.api.class_uid * 100 + activity_id,
    ...(isSuccess ? severities.informational : severities.medium),
    ...(isSuccess
      ? { status_id: 1, status: 'Success' }
      : { status_id: 2, status: 'Failure', status_detail: result }),
    ...sharedOf(entry),
    api: {
      operation: `${entity_type}.${operation}`,
      service: { name: 'strongroom' },
      ...(trace_id !== null && { request: { uid: trace_id } }),
    },
    ...(source?.user_agent && { http_request: { user_agent: source.user_agent } }),
    resources: [{ type: entity_type, uid: entity_id }],
  };
}

function findingOf(entry: ChainedEntry): object {
  const { operation, entity_id, message, created_at, stream_id, seq } = entry;
  const activity_id = activities.create.activity_id;
  return {
    ...activities.create,
    ...classes.finding,
    type_uid: classes.finding.class_uid * 100 + activity_id,
    ...severities.high,
    ...{ status_id: 1, status: 'New' },
    is_alert: true,
    ...sharedOf(entry),
    finding_info: {
      uid: `${stream_id}:${seq}`,
      title: message,
      types: [`alert.${operation}`],
      created_time: created_at,
    },
    resources: [{ uid: entity_id }],
  };
}

function sharedOf(entry: ChainedEntry): object {
  const { tenant_id, stream_id, seq, hash, created_at, message, origin, trace_id } = entry;
  return {
    time: created_at,
    message,
    metadata: {
      version: schemaVersion,
      product,
      log_name: 'audit',
      uid: `${stream_id}:${seq}`,
      sequence: seq,
      tenant_uid: tenant_id,
      ...(trace_id !== null && { correlation_uid: trace_id }),
    },
    actor: actorOf(entry),
    src_endpoint: origin === null ? { name: 'strongroom' } : { ip: origin },
    unmapped: { hash, ...unmappedOf(entry) },
  };
}

function actorOf({ actor_id, actor_type, source }: ChainedEntry): object {
  const isSession = actor_type === 'session';
  const application = source?.application_id ?? (isSession ? null : actor_id);
  const person = source?.person_id && {
    user: { uid: source.person_id, ...(source.person_name && { name: source.person_name }) },
  };
  return {
    app_name: actor_type,
    ...(application !== null && { app_uid: application }),
    ...(isSession && actor_id !== null && { session: { uid: actor_id } }),
    ...person,
  };
}

/** What the schema has no attribute for. */
function unmappedOf({ source, container, disclosure, state }: ChainedEntry): object {
  return {
    ...(source?.key_id && { key_id: source.key_id }),
    ...(source?.forwarded && { forwarded: source.forwarded }),
    ...(container !== null && { container }),
    ...(disclosure !== null && disclosureOf(disclosure)),
    ...(state !== null && { state }),
  };
}
