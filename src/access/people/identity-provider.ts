/**
 * The operator's identity provider (OpenID Connect). What it says counts only after every check of the standard: who
 * signed it, for whom, when, and in response to what.
 */
import type { Configuration, CustomFetch, ServerMetadata } from 'openid-client';
import { type Clock, hour, type Instant, parseInstant, second } from '../../base/clock.ts';
import { reasonOf, systemCodeOf, VaultError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { isLoopback } from '../../base/network.ts';
import type { Random } from '../../base/random.ts';
import {
  type LogoutChecks,
  type LogoutNotice,
  verifyLogoutToken,
} from '../../keys/logout-token.ts';
import { hostAndPort } from '../../outbound/allow-list.ts';
import { createOutbound, type OutboundResponse } from '../../outbound/call.ts';
import { valuesOf } from '../../outbound/end-to-end.ts';
import { OutboundError } from '../../outbound/error.ts';
import { createForward, type ForwardOptions } from '../../outbound/forward.ts';

/** As the operator configures it. */
export interface ProviderConfig {
  readonly issuer: string;
  readonly clientId: string;
  /** Absent for a public client. */
  readonly clientSecret: string | undefined;
  /** As people call it. */
  readonly name: string;
  /** Beside `openid`. */
  readonly scopes: readonly string[];
  /** The page of the console to which the provider sends people back. */
  readonly redirectUri: string;
  /** Where it sends them after they have signed out. */
  readonly consoleUrl: string;
}

/** What a sign-in began with, which only the browser of the person keeps, sealed. */
export interface IdentityRequest {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface IdentityAsked extends IdentityRequest {
  /** Whether the person has to prove again to be present. */
  readonly again: boolean;
}

/** Who signed in, as the provider says. */
export interface ProvenIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly claims: JsonObject;
  /** When the person last proved to the provider who they are; `undefined` where it does not say. */
  readonly authenticatedAt: Instant | undefined;
}

export interface IdentityProvider {
  readonly config: ProviderConfig;
  newRequest(): Omit<IdentityRequest, 'state'>;
  /** The address to which the person goes. @throws VaultError `unavailable` */
  urlFor(asked: IdentityAsked): Promise<string>;
  /**
   * @param response the query with which the provider sent the person back.
   * @throws VaultError `unauthenticated`, alike whatever is wrong; `unavailable` where the provider cannot be reached.
   */
  identityIn(response: string, began: IdentityRequest): Promise<ProvenIdentity>;
  /** Where the person also signs out of the provider, if it offers that and can be reached. */
  signOutUrl(): Promise<string | undefined>;
  /** What the provider itself says: that a person has signed out. @throws VaultError as {@link identityIn} does. */
  logoutIn(token: string): Promise<LogoutNotice>;
}

export interface ProviderTools {
  readonly clock: Clock;
  readonly random: Random;
  readonly outbound: ForwardOptions;
}

/** Of one call to the provider. */
const timeoutMs = 5 * second;
const responseBytesMax = 262_144;
/** How long the description of the provider is used. Its keys are read for each sign-in. */
const metadataMs = hour;
/** By how much its clock may be off. */
const toleranceSeconds = 30;

/** Loaded when somebody signs in with it. */
const library = () => import('openid-client');

/** Plain HTTP is for a provider on the machine of the vault. */
export function mayBePlain({ protocol, hostname }: URL): boolean {
  const name = hostname.replace(/^\[|\]$/g, '');
  return protocol === 'http:' && (name === 'localhost' || isLoopback(name));
}

export function createIdentityProvider(
  config: ProviderConfig,
  { clock, random, outbound }: ProviderTools,
): IdentityProvider {
  const issuer = new URL(config.issuer);
  const call = createCalls(issuer, outbound);
  let known: { readonly metadata: ServerMetadata; readonly at: Instant } | undefined;
  let shared: NoticeKeys | undefined;

  async function metadata(): Promise<ServerMetadata> {
    if (known && clock.now() - known.at < metadataMs) return known.metadata;
    const found = await discover(issuer, config, call);
    known = { metadata: found, at: clock.now() };
    return found;
  }

  /** Shared by notices: anybody may send one, and must not make the vault call the provider for each. */
  function noticeKeys(place: string | undefined): NoticeKeys {
    if (shared && clock.now() - shared.at < noticeKeysMs) return shared;
    const watched = watching(call);
    shared = { at: clock.now(), watched, keys: readKeys(place, watched) };
    shared.keys.catch(() => {
      shared = undefined;
    });
    return shared;
  }

  async function readKeys(
    place: string | undefined,
    { fetch }: WatchedCalls,
  ): Promise<LogoutChecks['keys']> {
    if (place === undefined) throw new TypeError('the provider has no keys');
    const url = new URL(place);
    if (url.protocol !== 'https:' && !mayBePlain(issuer)) throw new TypeError('not https');
    const response = await fetch(place, readingKeys);
    return (await response.json()) as LogoutChecks['keys'];
  }

  /** For one sign-in: it has seen no keys yet, so one that the provider withdrew no longer counts. */
  async function open(watched: WatchedCalls): Promise<Configuration> {
    const openid = await library();
    const found = await metadata();
    const client = {
      [openid.clockSkew]: Math.round((clock.now() - Date.now()) / second),
      [openid.clockTolerance]: toleranceSeconds,
    };
    const secret = clientSecretOf(openid, config, found);
    const opened = new openid.Configuration(found, config.clientId, client, secret);
    opened[openid.customFetch] = watched.fetch;
    if (mayBePlain(issuer)) openid.allowInsecureRequests(opened);
    openid.enableNonRepudiationChecks(opened);
    return opened;
  }

  return {
    config,
    newRequest: () => ({
      nonce: random(32).toString('base64url'),
      verifier: random(32).toString('base64url'),
    }),
    urlFor: async ({ state, nonce, verifier, again }) => {
      const openid = await library();
      const opened = await reaching(() => open(watching(call)));
      const url = openid.buildAuthorizationUrl(opened, {
        redirect_uri: config.redirectUri,
        scope: ['openid', ...config.scopes].join(' '),
        state,
        nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        // Either makes the provider say when the person proved who they are.
        ...(again ? { prompt: 'login', max_age: '0' } : { max_age: String(maxAgeSeconds) }),
      });
      return url.href;
    },
    identityIn: async (response, { state, nonce, verifier }) => {
      const openid = await library();
      const watched = watching(call);
      const opened = await reaching(() => open(watched));
      const url = new URL(config.redirectUri);
      url.search = response;
      return refusing(watched, async () => {
        const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
        const tokens = await openid.authorizationCodeGrant(opened, url, checks);
        const claims = tokens.claims();
        if (claims === undefined) throw new TypeError('no ID token');
        const { iss, sub, auth_time: at } = claims;
        if (sub === '' || sub.length > subjectLengthMax) throw new TypeError('no subject');
        const authenticatedAt = timeOfProof(at, clock.now());
        return { issuer: iss, subject: sub, claims: claims as JsonObject, authenticatedAt };
      });
    },
    signOutUrl: async () => {
      const openid = await library();
      try {
        const opened = await open(watching(call));
        if (opened.serverMetadata().end_session_endpoint === undefined) return undefined;
        const parameters = { post_logout_redirect_uri: config.consoleUrl };
        return openid.buildEndSessionUrl(opened, parameters).href;
      } catch {
        return undefined;
      }
    },
    logoutIn: async (token) => {
      const { jwks_uri: place, issuer: named } = await reaching(metadata);
      const { watched, keys } = noticeKeys(place);
      return refusing(watched, async () => {
        return verifyLogoutToken(token, {
          keys: await keys,
          issuer: named,
          audience: config.clientId,
          now: clock.now(),
        });
      });
    },
  };
}

const readingKeys = { method: 'GET', headers: {}, body: undefined, redirect: 'manual' } as const;

/** So long a key that the provider withdrew is still taken for a notice of it. */
const noticeKeysMs = 5 * second;

interface NoticeKeys {
  readonly at: Instant;
  readonly watched: WatchedCalls;
  readonly keys: Promise<LogoutChecks['keys']>;
}

/** The age of a proof that a sign-in accepts, which is as old as a session can become. */
const maxAgeSeconds = 12 * 3_600;
const subjectLengthMax = 255;

/** @throws Error where it is not a provider, or another one than the operator named. */
export async function discover(
  issuer: URL,
  { clientId }: Pick<ProviderConfig, 'clientId'>,
  call: ProviderCall,
): Promise<ServerMetadata> {
  const openid = await library();
  const opened = await openid.discovery(issuer, clientId, undefined, undefined, {
    [openid.customFetch]: watching(call).fetch,
    ...(mayBePlain(issuer) && { execute: [openid.allowInsecureRequests] }),
  });
  return opened.serverMetadata();
}

type Library = Awaited<ReturnType<typeof library>>;

/** As the provider says that it accepts. Where it says nothing, the standard has decided. */
function clientSecretOf(
  openid: Library,
  { clientSecret }: ProviderConfig,
  { token_endpoint_auth_methods_supported: ways = ['client_secret_basic'] }: ServerMetadata,
) {
  if (clientSecret === undefined) return openid.None();
  return ways.includes('client_secret_basic')
    ? openid.ClientSecretBasic(clientSecret)
    : openid.ClientSecretPost(clientSecret);
}

type ProviderCall = (url: URL, sent: Parameters<CustomFetch>[1]) => Promise<OutboundResponse>;

/**
 * Calls to the provider, and to the places that its description names: at public addresses, or on the operator's
 * allow-list. The operator named the issuer, which may be anywhere.
 */
export function createCalls(issuer: URL, options: ForwardOptions): ProviderCall {
  const allow = new Set([...options.allow, hostAndPort(issuer)]);
  const outbound = createOutbound(createForward({ ...options, allow }));
  return (url, { method, headers, body, signal }) =>
    outbound({
      method,
      url,
      headers,
      ...(body != null && { body: String(body) }),
      timeoutMs,
      ...(signal && { signal }),
      responseBytesMax,
      redirectsMax: 0,
    });
}

interface WatchedCalls {
  readonly fetch: CustomFetch;
  /** Why a call got no response. */
  failure: OutboundError | undefined;
}

function watching(call: ProviderCall): WatchedCalls {
  const watched: WatchedCalls = {
    failure: undefined,
    fetch: async (url, sent) => {
      try {
        const { status, headers, body } = await call(new URL(url), sent);
        const [mediaType] = valuesOf(headers, 'content-type');
        return new Response(bodiless.has(status) ? null : new Uint8Array(body), {
          status,
          ...(mediaType !== undefined && { headers: { 'content-type': mediaType } }),
        });
      } catch (error) {
        if (error instanceof OutboundError) watched.failure = error;
        throw error;
      }
    },
  };
  return watched;
}

/** Statuses with which `Response` takes no body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/** Without its description nobody can sign in. */
async function reaching<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw unreachable(error);
  }
}

/** `undefined` for a time that has not come yet as well, such as one in milliseconds: it says nothing. */
function timeOfProof(seconds: number | undefined, now: Instant): Instant | undefined {
  if (seconds === undefined || seconds > now / second + toleranceSeconds) return undefined;
  return parseInstant(Math.min(Math.floor(seconds * second), now));
}

/** Whatever is wrong, the response to an attacker is the same. */
async function refusing<T>(watched: WatchedCalls, verify: () => Promise<T>): Promise<T> {
  try {
    return await verify();
  } catch (error) {
    if (watched.failure) throw unreachable(watched.failure);
    if (error instanceof VaultError) throw error;
    throw new VaultError('unauthenticated', {
      public: 'The sign-in with the identity provider was not accepted. Try again.',
      internal: `a sign-in with the identity provider was refused: ${whyRefused(error)}`,
      cause: error,
    });
  }
}

/** An error of the standard, such as `invalid_client`. */
const standardError = /^[a-z_]{1,60}$/;

/** For the operator: without anything that a token holds. */
export function whyRefused(error: unknown): string {
  if (!(error instanceof Error)) return reasonOf(error);
  const { cause, name, message } = error;
  const outbound = [error, cause].find((one) => one instanceof OutboundError);
  if (outbound) return outbound.message;
  const said = 'error' in error ? String(error.error) : '';
  if (standardError.test(said)) return `it says ${said}`;
  // The library's messages are the same whatever the values are.
  return name === 'ClientError' ? `${message} (${systemCodeOf(error)})` : reasonOf(error);
}

function unreachable(error: unknown): VaultError {
  return new VaultError('unavailable', {
    public: 'The identity provider cannot be used now. Try again later.',
    internal: `the identity provider cannot be used: ${whyRefused(error)}`,
    cause: error,
  });
}
