/** Secrets of the console: the code in a link, and what the cookie of a session holds. Each names its tenant. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { parseUuid, type TenantId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import { sha256 } from './digest.ts';

const secretBytes = 32;
const form = /^([0-9a-f-]{36})\.[A-Za-z0-9_-]{43}$/;

/** 256 random bits, after the tenant in which they are looked up. */
export function newConsoleSecret(random: Random, tenant: TenantId): string {
  return `${tenant}.${random(secretBytes).toString('base64url')}`;
}

/** The tenant of the secret; `undefined` for what cannot be one. */
export function tenantOfSecret(secret: string): TenantId | undefined {
  const [, tenant] = form.exec(secret) ?? [];
  return tenant === undefined ? undefined : parseUuid<TenantId>(tenant);
}

/** The only trace of a secret that is stored. */
export function hashConsoleSecret(secret: string): string {
  return sha256(secret).toString('base64url');
}

/** True for the forgery token of the secret. */
export function isForgeryToken(given: string, secret: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(forgeryTokenOf(secret))];
  return one.length === other.length && timingSafeEqual(one, other);
}

/**
 * What each request of the session has to bring besides the cookie. A page of another origin can make a browser send
 * the cookie, and can neither read this nor send it.
 */
export function forgeryTokenOf(secret: string): string {
  return createHmac('sha256', secret)
    .update('strongroom console forgery token')
    .digest('base64url');
}
