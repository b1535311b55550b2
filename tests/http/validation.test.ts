/** Messages about bodies of the wrong shape: however large the body, they are right and cheap. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';
import { messagesMax } from '../../src/base/validation-errors.ts';
import { membersMax } from '../../src/http/protocol/shortened-body.ts';
import { compileValidator } from '../../src/http/protocol/validation.ts';

const validate = compileValidator(
  Type.Object(
    { many: Type.Optional(Type.Array(Type.String())), name: Type.String(), kind: Type.String() },
    { additionalProperties: false },
  ),
  'body',
);

function errorsOf(value: unknown): Readonly<Record<string, readonly string[]>> {
  const validated = validate(value);
  assert.ok('error' in validated);
  return validated.error.errors ?? {};
}

const texts = (count: number) => Array.from({ length: count }, () => 'x');

test('an attribute behind very many others is not said to be missing, and one that is missing is', () => {
  const unknown = Array.from({ length: membersMax }, (_, at) => [`a${at}`, 1] as const);
  const errors = errorsOf({ ...Object.fromEntries(unknown), name: 'x' });
  assert.ok(!('name' in errors));
  assert.deepEqual(errors['a0'], ['is not a known attribute']);
  const behindItems = errorsOf({ many: [1, ...texts(membersMax)], name: 'x' });
  assert.deepEqual(behindItems, { kind: ['is required'], 'many[0]': ['must be a string'] });
});

test('what is wrong further on than is looked at is refused by the name of what holds it', () => {
  const value = { name: 'x', kind: 'x', many: [...texts(membersMax), 1] };
  assert.deepEqual(Object.keys(errorsOf(value)), ['many']);
});

test('a valid value is valid however many members it has', () => {
  assert.ok('value' in validate({ name: 'x', kind: 'x', many: texts(10 * membersMax) }));
});

test('a megabyte of wrong members takes a small part of a second', () => {
  const value = { name: 'x', kind: 'x', many: Array.from({ length: 500_000 }, () => 1) };
  errorsOf({ many: [1] });
  const { user: before } = process.cpuUsage();
  assert.equal(Object.keys(errorsOf(value)).length, messagesMax);
  const { user: after } = process.cpuUsage();
  assert.ok(after - before < 150_000, `${after - before} µs of processor time`);
});
