/** Implements `bt` in code: the operations of the API, decided and logged like any request. */
import { VaultError } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import { attemptOf } from '../../rules/attempted-route.ts';
import { type Caller, withOwnOpenings } from '../../rules/caller.ts';
import { type Decide, perform } from '../../rules/operation.ts';
import type { Permission } from '../../rules/permissions.ts';
import { holds } from '../../rules/policy.ts';
import { refuse } from '../../rules/refusal.ts';
import type { TokenPatch } from '../../tokens/contents/contents.ts';
import { createToken, type TokenWriting } from '../../tokens/create.ts';
import { deleteToken } from '../../tokens/delete.ts';
import { readToken } from '../../tokens/read.ts';
import { detokenize } from '../../tokens/tokenization/detokenize.ts';
import { type ReadTokenRequest, tokenize } from '../../tokens/tokenization/tokenize.ts';
import { updateToken } from '../../tokens/update.ts';
import type { BtInput, BtOperation } from '../sandbox/sandbox.ts';

export interface CodeTokenTools extends TokenWriting {
  readonly readRequest: ReadTokenRequest;
  /** @throws VaultError `validation_failed` naming every attribute that is wrong. */
  readonly readPatch: (json: unknown) => TokenPatch;
}

interface CodeOperation {
  readonly permission: Permission;
  /** The method in log entries. */
  readonly method: string;
  readonly path: string;
  readonly decide: (tools: CodeTokenTools, actor: Caller, input: BtInput) => Decide;
}

const operations: Readonly<Record<BtOperation, CodeOperation>> = {
  'bt.tokens.retrieve': {
    permission: 'token:read',
    method: 'GET',
    path: '/tokens/:id',
    decide: (tools, actor, { id }) => readToken(tools, actor, id ?? ''),
  },
  'bt.tokens.create': {
    permission: 'token:create',
    method: 'POST',
    path: '/tokens',
    decide: (tools, actor, { body }) =>
      createToken(tools, actor, tools.readRequest(objectIn(body))),
  },
  'bt.tokens.update': {
    permission: 'token:update',
    method: 'PATCH',
    path: '/tokens/:id',
    decide: (tools, actor, { id, body }) =>
      updateToken(tools, actor, { id: id ?? '', patch: tools.readPatch(body) }),
  },
  'bt.tokens.delete': {
    permission: 'token:delete',
    method: 'DELETE',
    path: '/tokens/:id',
    decide: (tools, actor, { id }) => deleteToken(tools, actor, id ?? ''),
  },
  'bt.tokenize': {
    permission: 'token:create',
    method: 'POST',
    path: '/tokenize',
    decide: (tools, actor, { body }) =>
      tokenize(tools, actor, { body: jsonIn(body), readRequest: tools.readRequest }),
  },
  'bt.detokenize': {
    permission: 'token:read',
    method: 'POST',
    path: '/detokenize',
    decide: (tools, actor, { body }) => detokenize(tools, actor, jsonIn(body)),
  },
};

export interface TokenRequestOfCode {
  readonly operation: BtOperation;
  readonly input: BtInput;
  /** The source of the request in log entries. */
  readonly source: string;
}

/** @throws VaultError the refusal that the same request would get, once its log entry is durable. */
export async function tokensForCode(
  tools: CodeTokenTools,
  shared: Caller,
  { operation, input, source }: TokenRequestOfCode,
): Promise<unknown> {
  // Code may run several operations concurrently.
  const actor = withOwnOpenings(shared);
  const { store, clock } = tools;
  const { decide, ...route } = operations[operation];
  const decided: Decide = async (conflict) => {
    if (!holds(actor.policy, route.permission)) {
      const { entity } = attemptOf(route);
      return refuse(actor, clock.now(), { entity, id: '*', permission: route.permission });
    }
    operating ??= decide(tools, actor, input);
    return operating(conflict);
  };
  let operating: Decide | undefined;
  const reply = await perform({ store, actor, clock, route, source }, decided);
  return reply.body ?? null;
}

function jsonIn(body: unknown): Json {
  if (body === undefined) throw missing();
  return body as Json;
}

function objectIn(body: unknown) {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw missing();
  return body as Parameters<ReadTokenRequest>[0];
}

function missing(): VaultError {
  return new VaultError('validation_failed', {
    public: 'The request of the code has no body, or one of another kind.',
    errors: { body: ['must be given'] },
  });
}
