/** Where and how a tenant's code runs: the `runtime` of a reactor or of a transform in requests. */
import { second } from '../../base/clock.ts';
import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import type { ValidationErrors } from '../../base/validation-errors.ts';
import { type Permission, parsePermission, permissionAllowed } from '../../rules/permissions.ts';
import {
  codeLengthMax,
  timeoutMsDefault,
  timeoutMsMax,
  timeoutMsMaxAsync,
} from '../sandbox/limits.ts';

const images = ['node-bt', 'node22'] as const;
/** Determines how code is called, and what it can use. */
export type Image = (typeof images)[number];

export interface CodeRuntime {
  readonly image: Image;
  /** Whether every call of the reactor is asynchronous. */
  readonly async: boolean;
  /** Module names with the versions that the author expects. */
  readonly dependencies: Readonly<Record<string, string>>;
  readonly resolutions: Readonly<Record<string, string>>;
  /** Seconds; null for the default. */
  readonly timeout: number | null;
  readonly warm_concurrency: number;
  readonly resources: string;
  /** The permissions of `bt` in the code. */
  readonly permissions: readonly Permission[];
}

const runtimeDefault: CodeRuntime = {
  image: 'node-bt',
  async: false,
  dependencies: {},
  resolutions: {},
  timeout: null,
  warm_concurrency: 0,
  resources: 'standard',
  permissions: [],
};

const timeoutSecondsMin = 1;
const dependenciesMax = 50;
const permissionsMax = 50;
const resources = ['standard', 'large', 'xlarge'];

const names = new Set(Object.keys(runtimeDefault));
/** Attributes that the older image also has. */
const ofEveryImage = new Set(['image', 'timeout']);

/** What {@link isCode} accepts. */
export const codeForm = `must have 1 to ${codeLengthMax} valid Unicode characters`;

export function isCode(text: string): boolean {
  return text !== '' && text.length <= codeLengthMax && text.isWellFormed();
}

export interface RuntimePlace {
  readonly errors: ValidationErrors;
  /** The path of the attribute in error messages. */
  readonly path: string;
  /** A transform is never called asynchronously. */
  readonly mayBeAsync: boolean;
}

/** Null and absent mean the defaults. Problems are added to `errors`. */
export function readRuntime(given: Json | undefined, place: RuntimePlace): CodeRuntime {
  const { errors, path, mayBeAsync } = place;
  if (given === undefined || given === null) return runtimeDefault;
  if (!isObject(given)) {
    errors.add(path, 'must be an object');
    return runtimeDefault;
  }
  for (const [name, value] of Object.entries(given)) {
    if (value !== null && !names.has(name)) errors.add(path, 'has an unknown attribute');
  }
  const image = images.find((one) => one === (given['image'] ?? runtimeDefault.image));
  if (image === undefined) errors.add(`${path}.image`, `must be one of ${images.join(', ')}`);
  if (image === 'node-bt') refuseNewer(given, place);
  const isAsync = readFlag(given, 'async', place);
  if (isAsync && !mayBeAsync) errors.add(`${path}.async`, 'is for reactors alone');
  return {
    image: image ?? runtimeDefault.image,
    async: isAsync,
    dependencies: readVersions(given, 'dependencies', place),
    resolutions: readVersions(given, 'resolutions', place),
    timeout: readTimeout(given, { ...place, isAsync }),
    warm_concurrency: readWarm(given, place),
    resources: readResources(given, place),
    permissions: readPermissions(given, place),
  };
}

function refuseNewer(given: JsonObject, { errors, path }: RuntimePlace): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || !names.has(name) || ofEveryImage.has(name)) continue;
    errors.add(`${path}.${name}`, 'needs the image node22');
  }
}

function readFlag(given: JsonObject, name: string, { errors, path }: RuntimePlace): boolean {
  const value = given[name] ?? false;
  if (typeof value !== 'boolean') errors.add(`${path}.${name}`, 'must be true or false');
  return value === true;
}

function readTimeout(
  given: JsonObject,
  { errors, path, isAsync }: RuntimePlace & { readonly isAsync: boolean },
): number | null {
  const seconds = given['timeout'] ?? null;
  if (seconds === null) return null;
  const max = (isAsync ? timeoutMsMaxAsync : timeoutMsMax) / second;
  const isWhole = typeof seconds === 'number' && Number.isInteger(seconds);
  if (isWhole && seconds >= timeoutSecondsMin && seconds <= max) return seconds;
  errors.add(`${path}.timeout`, `must be a whole number from ${timeoutSecondsMin} to ${max}`);
  return null;
}

function readWarm(given: JsonObject, { errors, path }: RuntimePlace): number {
  const warm = given['warm_concurrency'] ?? 0;
  if (warm === 0 || warm === 1) return warm;
  errors.add(`${path}.warm_concurrency`, 'must be 0 or 1');
  return 0;
}

function readResources(given: JsonObject, { errors, path }: RuntimePlace): string {
  const size = given['resources'] ?? runtimeDefault.resources;
  if (typeof size === 'string' && resources.includes(size)) return size;
  errors.add(`${path}.resources`, `must be one of ${resources.join(', ')}`);
  return runtimeDefault.resources;
}

const moduleForm = /^(?:@[a-z0-9._-]{1,100}\/)?[a-z0-9._-]{1,100}$/i;
const versionForm = /^[\w.+-]{1,50}$/;

function readVersions(
  given: JsonObject,
  name: 'dependencies' | 'resolutions',
  { errors, path }: RuntimePlace,
): Readonly<Record<string, string>> {
  const versions = given[name] ?? {};
  const form = `must give up to ${dependenciesMax} names of packages, each with its exact version`;
  if (!isObject(versions)) {
    errors.add(`${path}.${name}`, form);
    return {};
  }
  const entries = Object.entries(versions);
  const isValid = ([key, version]: [string, Json]) =>
    moduleForm.test(key) && typeof version === 'string' && versionForm.test(version);
  if (entries.length > dependenciesMax || !entries.every(isValid)) {
    errors.add(`${path}.${name}`, form);
    return {};
  }
  return versions as Readonly<Record<string, string>>;
}

/** The permissions that a private application may hold. */
function readPermissions(given: JsonObject, { errors, path }: RuntimePlace): readonly Permission[] {
  const list = given['permissions'] ?? [];
  const held = Array.isArray(list) ? list.map(parsed) : [undefined];
  const known = held.filter((one) => one !== undefined);
  if (held.length <= permissionsMax && known.length === held.length) return [...new Set(known)];
  const form = `must contain at most ${permissionsMax} permissions of private applications`;
  errors.add(`${path}.permissions`, form);
  return [];
}

function parsed(given: Json): Permission | undefined {
  const permission = typeof given === 'string' ? parsePermission(given) : undefined;
  return permission && permissionAllowed(permission, 'private') ? permission : undefined;
}

/** @param defaultMs if the runtime has no timeout. */
export function timeoutMsOf({ timeout }: CodeRuntime, defaultMs = timeoutMsDefault): number {
  return timeout === null ? defaultMs : timeout * second;
}
