/** A client that keeps a vault busy while a test does something else. */
import assert from 'node:assert/strict';
import { request } from './vault.ts';

const firstTokens = 10;

/**
 * Resolves once the first tokens exist, and creates more, one after another, until it is ended.
 * `created` has those that were acknowledged.
 */
export async function createTokens(url: string, key: string) {
  const created: string[] = [];
  const create = async () => {
    const body = { type: 'token', data: { order: created.length }, metadata: { kind: 'order' } };
    const response = await request(`${url}/tokens`, 'POST', { key, body });
    assert.equal(response.status, 201);
    created.push(response.body.id);
  };
  while (created.length < firstTokens) await create();
  const state = { ended: false };
  const loop = async () => {
    while (!state.ended) await create();
  };
  const running = loop();
  const end = async () => {
    state.ended = true;
    await running;
  };
  return { created, end };
}
