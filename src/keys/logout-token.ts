/** Logout tokens, with which an identity provider says that a person has signed out there (back-channel log-out). */
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { type Instant, minute, parseInstant, second } from '../base/clock.ts';
import { invalid } from '../base/errors.ts';

export interface LogoutNotice {
  readonly issuer: string;
  readonly subject: string;
  /** When the provider said so: what began later is not meant. */
  readonly at: Instant;
}

export interface LogoutChecks {
  readonly keys: JSONWebKeySet;
  readonly issuer: string;
  readonly audience: string;
  readonly now: Instant;
}

const event = 'http://schemas.openid.net/event/backchannel-logout';
/** Signatures with a private key. A secret that both sides know proves nothing here. */
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
];

/**
 * @throws Error unless it says, for this client and now, that a person has signed out (its section 2.6). VaultError
 * `validation_failed` for a genuine one that names no person.
 */
export async function verifyLogoutToken(
  token: string,
  { keys, issuer, audience, now }: LogoutChecks,
): Promise<LogoutNotice> {
  const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
    issuer,
    audience,
    algorithms,
    currentDate: new Date(now),
    clockTolerance: 30,
    maxTokenAge: (5 * minute) / second,
    requiredClaims: ['iat', 'jti'],
  });
  const { events, nonce, sub, iat } = payload;
  const isMeant = typeof events === 'object' && events !== null && Object.hasOwn(events, event);
  if (!isMeant || nonce !== undefined) throw new TypeError('not a logout token');
  // What the provider calls its session (`sid`) is not stored, so it ends none.
  if (typeof sub !== 'string') {
    throw invalid(
      'logout_token',
      'must name the person in sub; a session (sid) alone is not enough',
    );
  }
  if (iat === undefined) throw new TypeError('it says no time');
  return { issuer, subject: sub, at: parseInstant(Math.floor(iat * second)) };
}
