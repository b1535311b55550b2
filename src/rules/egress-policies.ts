/** Egress policies of an application: where its programs may send requests, and which values may be in them. */
import { isIP } from 'node:net';
import { type Container, containerForm, parseContainer } from '../base/container.ts';
import { parseTokenId, type TokenId, tokenIdForm } from '../base/ids.ts';
import { createValidationErrors, type ValidationErrors } from '../base/validation-errors.ts';
import { sha256 } from '../keys/digest.ts';
import { matchesWildcard } from './destinations.ts';
import { hostLengthMax } from './host-names.ts';
import type { ApplicationKind } from './permissions.ts';

export const policiesMax = 50;
export const policyItemsMax = 100;
export const policyTextLengthMax = 400;
export const egressCountMax = 1_000_000_000;
export const egressMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
export const approvals = ['none', 'first', 'always'] as const;

export interface EgressLimit {
  readonly per_hour?: number | undefined;
  readonly per_day?: number | undefined;
}

/** A policy as it is stored and shown. What is absent is not limited, except that no value is sent. */
export interface EgressPolicy {
  /** A host, or `*.` and the host below which one label may stand. */
  readonly host: string;
  /** 443 unless given, and 80 for `plain`. */
  readonly port?: number;
  /** Requests go to http, without TLS. */
  readonly plain?: true;
  /** Connections are passed on without being opened. */
  readonly tunnel?: true;
  /** A request may open a WebSocket, in which the program then sends what it likes. */
  readonly websocket?: true;
  readonly methods?: readonly string[];
  readonly paths?: readonly string[];
  readonly tokens?: readonly TokenId[];
  readonly containers?: readonly Container[];
  /** Where a value may stand: `header:NAME`, `json:PATH` or `form:NAME`. */
  readonly places?: readonly string[];
  readonly calls?: EgressLimit;
  readonly values?: EgressLimit;
  readonly approval?: 'first' | 'always';
}

/** A policy as the wire schema lets it through: shapes are checked, and null means absent. */
export type WirePolicy = {
  readonly [Name in keyof EgressPolicy]?: unknown;
} & {
  readonly host: string;
  readonly port?: number | null;
  readonly plain?: boolean | null;
  readonly tunnel?: boolean | null;
  readonly websocket?: boolean | null;
  readonly methods?: readonly string[] | null;
  readonly paths?: readonly string[] | null;
  readonly tokens?: readonly string[] | null;
  readonly containers?: readonly string[] | null;
  readonly places?: readonly string[] | null;
  readonly calls?: EgressLimit | null;
  readonly values?: EgressLimit | null;
  readonly approval?: (typeof approvals)[number] | null;
};

type RefusePolicyAttribute = (attribute: string, message: string) => void;

/**
 * Null and `undefined` are an application without policies, which reaches nothing.
 * @throws VaultError `validation_failed` naming everything that is wrong, or that contradicts the rest.
 */
export function parsePolicies(
  given: readonly WirePolicy[] | null | undefined,
  kind: ApplicationKind,
): readonly EgressPolicy[] | undefined {
  if (given === null || given === undefined || given.length === 0) return undefined;
  const errors = createValidationErrors();
  if (kind !== 'private') errors.add('egress', 'can be given to private applications only');
  if (given.length > policiesMax) {
    errors.add('egress', `must contain at most ${policiesMax} policies`);
    errors.settle();
  }
  const policies = given.map((one, index) => {
    const refuse: RefusePolicyAttribute = (attribute, message) =>
      errors.add(`egress[${index}].${attribute}`, message);
    return readPolicy(one, refuse);
  });
  refuseUnreachable(policies, errors);
  errors.settle();
  return policies;
}

function readPolicy(wire: WirePolicy, refuse: RefusePolicyAttribute): EgressPolicy {
  const host = wire.host.toLowerCase();
  if (!isHostPattern(host)) {
    refuse('host', 'must be a host name such as api.example.com, or *.example.com, without a port');
  }
  const policy: EgressPolicy = {
    host,
    ...(wire.port && { port: wire.port }),
    ...(wire.plain && { plain: true }),
    ...(wire.tunnel && { tunnel: true }),
    ...(wire.websocket && { websocket: true }),
    ...listOf('methods', wire, refuse),
    ...listOf('paths', wire, refuse),
    ...readTokens(wire, refuse),
    ...readContainers(wire, refuse),
    ...readPlaces(wire, refuse),
    ...limitOf('calls', wire, refuse),
    ...limitOf('values', wire, refuse),
    ...(wire.approval && wire.approval !== 'none' && { approval: wire.approval }),
  };
  refuseContradictions(policy, refuse);
  return policy;
}

const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
const hostForm = new RegExp(`^(?:\\*\\.${label}\\.)?${label}(?:\\.${label})*$`);

function isHostPattern(host: string): boolean {
  return host.length <= hostLengthMax && hostForm.test(host) && isIP(host) === 0;
}

const listForms = {
  methods: {
    isValid: (one: string) => (egressMethods as readonly string[]).includes(one),
    form: `must be one of ${egressMethods.join(', ')}`,
  },
  paths: {
    isValid: (one: string) =>
      one.length <= policyTextLengthMax && /^[/*][!-~]*$/.test(one) && !/[?#\\]/.test(one),
    form: `must be a path of at most ${policyTextLengthMax} characters that begins with / or *, without a query`,
  },
} as const;

function listOf(
  name: keyof typeof listForms,
  { [name]: list }: WirePolicy,
  refuse: RefusePolicyAttribute,
): Partial<EgressPolicy> {
  if (!isGiven(name, list, refuse)) return {};
  const { isValid, form } = listForms[name];
  for (const [at, one] of list.entries()) if (!isValid(one)) refuse(`${name}[${at}]`, form);
  return { [name]: [...new Set(list)] };
}

function readTokens({ tokens }: WirePolicy, refuse: RefusePolicyAttribute): Partial<EgressPolicy> {
  if (!isGiven('tokens', tokens, refuse)) return {};
  const read = tokens.flatMap((text, at) => {
    const id = parseTokenId(text);
    if (id === undefined) refuse(`tokens[${at}]`, tokenIdForm);
    return id ?? [];
  });
  return { tokens: [...new Set(read)] };
}

function readContainers(
  { containers }: WirePolicy,
  refuse: RefusePolicyAttribute,
): Partial<EgressPolicy> {
  if (!isGiven('containers', containers, refuse)) return {};
  const read = containers.flatMap((text, at) => {
    const container = parseContainer(text);
    if (container === undefined) refuse(`containers[${at}]`, containerForm);
    return container ?? [];
  });
  return { containers: [...new Set(read)] };
}

/** A list with entries. */
function isGiven(
  name: string,
  list: readonly string[] | null | undefined,
  refuse: RefusePolicyAttribute,
): list is readonly string[] {
  if (list === null || list === undefined) return false;
  if (list.length > 0 && list.length <= policyItemsMax) return true;
  refuse(name, `must contain 1 to ${policyItemsMax} entries; leave it out otherwise`);
  return false;
}

/** The kinds of places, and the names that each may have. Header names are compared in lower case. */
const placeKinds: Readonly<Record<string, RegExp>> = {
  header: /^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/,
  json: /^[^\s\p{Cc}.]{1,100}(?:\.[^\s\p{Cc}.]{1,100}){0,15}$/u,
  form: /^[^\p{Cc}]{1,200}$/u,
};

/** They say how a message is read, or where it goes. */
const headersOfMessages: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'content-length', 'content-type', 'content-encoding', 'expect'],
  ...['keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'accept-encoding', 'range'],
  ...['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions'],
  ...['cdn-loop', 'proxy-authorization', 'proxy-authenticate', 'proxy-connection'],
]);

function readPlaces({ places }: WirePolicy, refuse: RefusePolicyAttribute): Partial<EgressPolicy> {
  if (!isGiven('places', places, refuse)) return {};
  const read = places.map((text, at) => {
    const [, kind = '', name = ''] = /^([a-z]+):(.*)$/s.exec(text) ?? [];
    const spelled = kind === 'header' ? name.toLowerCase() : name;
    const form = Object.hasOwn(placeKinds, kind) ? placeKinds[kind] : undefined;
    if (!form?.test(spelled)) {
      const examples = 'header:authorization, json:card.number, or form:card[number]';
      refuse(
        `places[${at}]`,
        `must be a place such as ${examples}; a path and a query are never one`,
      );
    } else if (kind === 'header' && headersOfMessages.has(spelled)) {
      refuse(`places[${at}]`, 'must not be a header that says how the message is read or sent');
    }
    return `${kind}:${spelled}`;
  });
  return { places: [...new Set(read)] };
}

function limitOf(
  name: 'calls' | 'values',
  { [name]: limit }: WirePolicy,
  refuse: RefusePolicyAttribute,
): Partial<EgressPolicy> {
  if (limit === null || limit === undefined) return {};
  const { per_hour, per_day } = limit;
  if (per_hour === undefined && per_day === undefined) {
    refuse(name, 'must have per_hour, per_day, or both');
  }
  if (per_hour !== undefined && per_day !== undefined && per_hour > per_day) {
    refuse(`${name}.per_hour`, 'must not be more than per_day');
  }
  const limits = { ...(per_hour && { per_hour }), ...(per_day && { per_day }) };
  return { [name]: limits };
}

/** What a connection that is not opened cannot be held to. */
const ofOpened = [
  'plain',
  'websocket',
  'methods',
  'paths',
  'tokens',
  'containers',
  'places',
  'calls',
  'values',
  'approval',
] as const;

function refuseContradictions(policy: EgressPolicy, refuse: RefusePolicyAttribute): void {
  const { tunnel, plain, websocket, tokens, containers, places = [], values, methods } = policy;
  if (tunnel) {
    for (const name of ofOpened) {
      if (policy[name] !== undefined)
        refuse(name, 'cannot be held to in a tunnel, which is not opened');
    }
    return;
  }
  const hasTokens = tokens !== undefined || containers !== undefined;
  if (hasTokens && places.length === 0) {
    refuse('places', 'must say where the values of tokens may stand');
  }
  if (!hasTokens && places.length > 0) {
    refuse('tokens', 'or containers must say whose values may stand in these places');
  }
  if (!hasTokens && values)
    refuse('values', 'needs tokens or containers, without which none is sent');
  if (plain && hasTokens)
    refuse('plain', 'cannot be combined with tokens: values are sent to https only');
  if (websocket && plain) refuse('websocket', 'cannot be combined with plain: it needs https');
  if (websocket && methods?.includes('GET') === false)
    refuse('websocket', 'needs the method GET, by which it is opened');
  const hasBody = methods?.some((method) => !/^(?:GET|HEAD|OPTIONS)$/.test(method)) ?? true;
  for (const [at, place] of places.entries()) {
    if (hasBody || place.startsWith('header:')) continue;
    refuse(`places[${at}]`, 'is in a body, which requests with these methods do not have');
  }
}

/** A policy that another one before it always decides for, and hosts that are opened and not opened. */
function refuseUnreachable(policies: readonly EgressPolicy[], errors: ValidationErrors): void {
  for (const [index, policy] of policies.entries()) {
    const at = policies.findIndex((other, before) => before < index && decidesFor(other, policy));
    if (at >= 0)
      errors.add(`egress[${index}]`, `is never reached: egress[${at}] decides before it`);
    const opened = policies.findIndex(
      (other) => policy.tunnel && !other.tunnel && !other.plain && meet(policy, other),
    );
    if (opened >= 0) {
      errors.add(
        `egress[${index}].tunnel`,
        `cannot be true: egress[${opened}] opens the same host`,
      );
    }
  }
}

function decidesFor(one: EgressPolicy, other: EgressPolicy): boolean {
  const covers = (all: readonly string[] | undefined, some: readonly string[] | undefined) =>
    all === undefined || some?.every((item) => all.includes(item)) === true;
  if (one.plain !== other.plain || portOf(one) !== portOf(other)) return false;
  if (one.host !== other.host && !hostMatches(one.host, other.host)) return false;
  return covers(one.methods, other.methods) && covers(one.paths, other.paths);
}

function meet(one: EgressPolicy, other: EgressPolicy): boolean {
  if (portOf(one) !== portOf(other)) return false;
  return (
    one.host === other.host ||
    hostMatches(one.host, other.host) ||
    hostMatches(other.host, one.host)
  );
}

export function portOf({ port, plain }: Pick<EgressPolicy, 'port' | 'plain'>): number {
  return port ?? (plain ? 80 : 443);
}

/** @param host in lower case, without a dot at its end. */
function hostMatches(pattern: string, host: string): boolean {
  if (!pattern.startsWith('*.')) return pattern === host;
  const parent = pattern.slice(1);
  const first = host.slice(0, -parent.length);
  return host.endsWith(parent) && first !== '' && !first.includes('.') && first !== '*';
}

/** What an approval is for ends with the policy: any change of it makes another one. */
export function digestOfPolicy(policy: EgressPolicy): string {
  return sha256(JSON.stringify(policy)).toString('base64url');
}

/** A request as policies see it. */
export interface EgressTarget {
  readonly isPlain: boolean;
  /** In lower case, without a dot at its end. */
  readonly host: string;
  readonly port: number;
}

/** The policies for a host, and for its port. */
export function policiesFor(
  policies: readonly EgressPolicy[],
  { host, port, isPlain }: EgressTarget,
): readonly EgressPolicy[] {
  return policies.filter(
    (one) =>
      (one.plain ?? false) === isPlain && portOf(one) === port && hostMatches(one.host, host),
  );
}

/** The policy that decides about a request to its host. */
export function policyFor(
  policies: readonly EgressPolicy[],
  { method, path }: { readonly method: string; readonly path: string },
): EgressPolicy | undefined {
  return policies.find(
    ({ methods, paths }) =>
      (methods?.includes(method) ?? true) &&
      (paths?.some((pattern) => matchesWildcard(pattern, path)) ?? true),
  );
}

/** Whether the values of a token may be sent at all under the policy. */
export function policyHasToken(
  { tokens = [], containers = [] }: EgressPolicy,
  token: { readonly id: string; readonly container: string },
): boolean {
  return (
    (tokens as readonly string[]).includes(token.id) ||
    containers.some((container) => token.container.startsWith(container))
  );
}

/** The place of the policy where a value may stand so. In a path of JSON, `*` is any member or any element. */
export function placeOfPolicy({ places = [] }: EgressPolicy, place: string): string | undefined {
  if (places.includes(place)) return place;
  if (!place.startsWith('json:')) return undefined;
  const steps = place.slice('json:'.length).split('.');
  return places.find((one) => {
    if (!one.startsWith('json:')) return false;
    const pattern = one.slice('json:'.length).split('.');
    return (
      pattern.length === steps.length &&
      pattern.every((step, at) => step === '*' || step === steps[at])
    );
  });
}
