/** The tables of people: who may use the console, the links that let them in, and their sessions. */
import type { Instant } from '../base/clock.ts';
import type {
  ApplicationId,
  ConsoleLinkId,
  ConsoleSessionId,
  KeyId,
  PersonId,
  SignInMethodId,
  TenantId,
} from '../base/ids.ts';
import { integer, optional, proof, type TableSpec, text } from './columns.ts';

/** By whom a link was made: all null for the operator's, and those of earlier releases. */
const maker = {
  created_by: optional(text<ApplicationId>()),
  /** The key that was sent. */
  created_by_key: optional(text<KeyId>()),
  /** The person who acted as the application. */
  created_by_person: optional(text<PersonId>()),
};

/** How a session began. */
export type SignIn = 'link' | 'passkey' | 'oidc';

export const peopleTables = {
  people: {
    key: ['tenant_id', 'person_id'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      person_id: text<PersonId>(),
      version: integer(),
      name: text(),
      /** JSON array of the applications as which the person may act, which are the person's roles. */
      application_ids: text(),
      created_by: optional(text<ApplicationId>()),
      created_at: integer<Instant>(),
      modified_by: optional(text<ApplicationId>()),
      modified_at: optional(integer<Instant>()),
      proof: proof(),
    },
  },
  /** Links that let a person in once. */
  console_links: {
    key: ['tenant_id', 'code_hash'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      /** base64url of SHA-256 of the code in the link. */
      code_hash: text(),
      version: integer(),
      link_id: text<ConsoleLinkId>(),
      person_id: text<PersonId>(),
      /** The name of a person whom the use of the link creates; null where the person exists. */
      new_name: optional(text()),
      created_at: integer<Instant>(),
      expires_at: integer<Instant>(),
      ...maker,
      proof: proof(),
    },
  },
  console_sessions: {
    key: ['tenant_id', 'secret_hash'],
    unique: { id: ['tenant_id', 'session_id'] },
    columns: {
      tenant_id: text<TenantId>(),
      /** base64url of SHA-256 of the secret in the cookie. */
      secret_hash: text(),
      version: integer(),
      session_id: text<ConsoleSessionId>(),
      person_id: text<PersonId>(),
      sign_in: text<SignIn>(),
      /** When the person last proved to be present; what reveals a value may ask for a recent proof. */
      authenticated_at: integer<Instant>(),
      /** The address of the browser that signed in. */
      address: text(),
      created_at: integer<Instant>(),
      /** The session ends then unless it is used before. */
      idle_at: integer<Instant>(),
      /** The session ends then at the latest. */
      expires_at: integer<Instant>(),
      /** Of the link with which it began, if it began with one. */
      ...maker,
      proof: proof(),
    },
  },
  /** With what people sign in again: their passkeys, and who they are to the identity provider. */
  sign_in_methods: {
    key: ['tenant_id', 'identity_hash'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      /** base64url of SHA-256 of the id of the passkey, or of issuer and subject. */
      identity_hash: text(),
      version: integer(),
      method_id: text<SignInMethodId>(),
      person_id: text<PersonId>(),
      kind: text<Exclude<SignIn, 'link'>>(),
      name: text(),
      /** JSON; what it holds depends on the kind. No secret is in it. */
      details: text(),
      created_at: integer<Instant>(),
      /** When the last sign-in with it began: one that began earlier, or a replay, is refused. */
      used_at: integer<Instant>(),
      proof: proof(),
    },
  },
} as const satisfies Record<string, TableSpec>;
