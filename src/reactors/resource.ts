/** Reactors as a stored resource: what is special about creating, reading, listing, changing, and removing them. */
import { isDeepStrictEqual } from 'node:util';
import { VaultError } from '../base/errors.ts';
import { newUuid, type ReactorId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import type { Secret } from '../base/secret.ts';
import type { Caller } from '../rules/caller.ts';
import { shownConfiguration, withoutValues } from '../rules/configuration.ts';
import { requireLinkedApplication } from '../rules/linked-application.ts';
import { type Opener, openerFor, type Resealer } from '../rules/openings.ts';
import type { Decide } from '../rules/operation.ts';
import { type Keys, proven, requireProven } from '../rules/proven-row.ts';
import { openSettings, resealSettings, sealSettings } from '../rules/sealed-settings.ts';
import { requireRoom } from '../rules/settings.ts';
import {
  type ListTools,
  merged,
  type NamedResource,
  type PatchedResource,
  viewHistory,
} from '../rules/stored-resource.ts';
import { reactorCount, reactorPage } from '../store/queries/reactors.ts';
import type { Store } from '../store/store.ts';
import type { Unproven } from '../store/stored-row.ts';
import type { Row } from '../store/tables.ts';
import { type CodeTools, refusalOfRights, refusalWhereOff, requireRunnable } from './code/check.ts';
import {
  parseReactor,
  type ReactorDefinition,
  type ReactorRequest,
  type ReactorSettings,
  requestOf,
  shownRuntime,
} from './definition.ts';

export interface ReactorReading extends Pick<CodeTools, 'clock'> {
  readonly store: Store;
}

export interface ReactorWriting extends ReactorReading, CodeTools, ListTools {
  readonly random: Random;
  /** The row that keeps code which is replaced. */
  readonly keepVersion: (
    caller: Caller,
    reactor: ReactorId,
    code: string,
  ) => Promise<readonly Row<'reactor_runs'>[]>;
}

type ReactorRow = Row<'reactors'>;
type ReactorResource = NamedResource<'reactors', ReactorId> &
  PatchedResource<'reactors', ReactorRequest, ReactorSettings, ReactorDefinition>;

/**
 * Create and change throw `forbidden` if code is switched off, or if the key cannot lend the rights; `unprocessable`
 * for code that cannot run; `validation_failed` for an application that cannot be used.
 */
export function reactorResource(tools: ReactorWriting): ReactorResource {
  const { store, clock, random } = tools;

  const requireUsable = ({ tenant }: Caller, { code, runtime }: ReactorDefinition) =>
    requireRunnable(tools.code, tenant, { code, runtime, path: 'code', runtimePath: 'runtime' });

  return {
    store,
    clock,
    table: 'reactors',
    path: '/reactors',
    open: (caller, row) => openReactor(openerFor(caller, 'reactor:update'), row).reveal(),
    count: reactorCount,
    page: reactorPage,
    parse: parseReactor,
    patched: ({ name }, definition, patch) =>
      parseReactor(merged(requestOf({ name, definition }), patch)),

    async check(caller, attempt, { settings: { definition }, before }) {
      const coded = { entity: 'reactor', ...attempt } as const;
      const isOff = refusalWhereOff(tools, caller, coded);
      if (isOff || isDeepStrictEqual(before, definition)) return isOff;
      // Removing rights requires none.
      const refused = refusalOfRights(tools, caller, { ...coded, ...definition });
      if (refused) return refused;
      await requireLinkedApplication(store, caller.tenant, definition.application_id);
      return undefined;
    },

    requireRoom: async ({ id: tenant, quotas }) =>
      requireRoom(quotas, 'reactor_limit', await store.select(reactorCount({ tenant }))),

    async make(caller, columns, { name, definition }) {
      await requireUsable(caller, definition);
      const unsealed = { ...columns, reactor_id: newUuid<ReactorId>(random), name };
      const row = reactorRow(caller.tenant, { definition, random }, unsealed);
      const body = viewReactor(row, definition, withoutValues(definition.configuration));
      const narrower = { permission: configurationPermission, body } as const;
      return { row, reply: { body: viewFor(caller, row, definition), narrower } };
    },

    async revise(caller, next, { settings: { name, definition }, before }) {
      if (!isDeepStrictEqual(before, definition)) await requireUsable(caller, definition);
      const row = reactorRow(caller.tenant, { definition, random }, { ...next, name });
      if (before.code === definition.code) return { row };
      const reactor_runs = await tools.keepVersion(caller, row.reactor_id, before.code);
      return { row, insert: { reactor_runs } };
    },

    show: (caller, row, operation) =>
      viewFor(caller, row, openReactor(openerFor(caller, `reactor:${operation}`), row).reveal()),
  };
}

type UnsealedReactor = Omit<ReactorRow, 'body' | 'proof'>;

function reactorRow(
  { keyring }: Keys,
  { definition, random }: { readonly definition: ReactorDefinition; readonly random: Random },
  row: UnsealedReactor,
): ReactorRow {
  const body = sealSettings({ keyring, random }, sealedAs(row), definition);
  return proven({ keyring }, 'reactors', { ...row, body });
}

/**
 * Returns the settings of a reactor.
 * @throws VaultError `integrity`, which names the row, if what is sealed in it was altered.
 */
export function openReactor(opener: Opener, row: ReactorRow): Secret<ReactorDefinition> {
  return openSettings<ReactorDefinition>(opener, sealedAs(row), row.body);
}

/** The row in its next version, with its settings sealed again. @throws VaultError `integrity` when it was altered. */
export function resealedReactor(resealer: Resealer, stored: Unproven<'reactors'>): ReactorRow {
  const { proof: _proof, ...row } = requireProven(resealer, 'reactors', stored);
  const body = resealSettings(resealer, sealedAs(row), row.body);
  return proven(resealer, 'reactors', { ...row, version: row.version + 1, body });
}

function sealedAs({ tenant_id, reactor_id: id, version }: UnsealedReactor) {
  return { entity: 'reactor', tenant_id, id, version } as const;
}

/** Callers with this permission see the values of a configuration. Others see only the names. */
const configurationPermission = 'reactor:update';

function viewFor(caller: Caller, row: ReactorRow, definition: ReactorDefinition): object {
  const { configuration } = definition;
  const shown = shownConfiguration(caller, configurationPermission, configuration);
  return viewReactor(row, definition, shown);
}

function viewReactor(
  row: ReactorRow,
  { code, application_id, runtime, allowed_hosts }: ReactorDefinition,
  configuration: Readonly<Record<string, string | null>>,
): object {
  return {
    id: row.reactor_id,
    tenant_id: row.tenant_id,
    name: row.name,
    code,
    configuration,
    ...(application_id && { application: { id: application_id } }),
    runtime: shownRuntime(runtime),
    ...(allowed_hosts && { allowed_hosts }),
    state: 'active',
    ...viewHistory(row),
  };
}

/**
 * Formulas held the code of reactors until February 2024.
 * @throws VaultError `gone`, which names their replacement.
 */
export function formulasRemoved(): Decide {
  throw new VaultError('gone', {
    public:
      'Reactor formulas are removed. Set the code of the formula as the attribute code of each reactor ' +
      'that used it, with PATCH /reactors/{id}.',
  });
}
