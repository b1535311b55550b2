/** The bank object: which routing and account numbers it may hold. */
import { abaValid } from '../../base/checks.ts';
import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import { type PropertyRule, parseProperties } from './structured-data.ts';

const accountNumberPattern = /^[0-9]{3,17}$/;

export const routingNumberForm = 'must be a routing number: 9 digits that pass the ABA check';
export const accountNumberForm = 'must be an account number: a string of 3 to 17 digits';

export function parseRoutingNumber(value: Json): string | undefined {
  return typeof value === 'string' && abaValid(value) ? value : undefined;
}

export function parseAccountNumber(value: Json): string | undefined {
  return typeof value === 'string' && accountNumberPattern.test(value) ? value : undefined;
}

const rules: Readonly<Record<string, PropertyRule>> = {
  routing_number: { required: true, form: routingNumberForm, parse: parseRoutingNumber },
  account_number: { required: true, form: accountNumberForm, parse: parseAccountNumber },
};

export const bankProperties: readonly string[] = Object.keys(rules);

/** @throws VaultError 400 naming every property that is wrong. */
export function parseBank(data: Json): JsonObject {
  return parseProperties(
    data,
    rules,
    'must be a bank object with the properties "routing_number" and "account_number"',
  );
}

/** What may be shown of an account. */
export function summaryOfBank(data: Json): JsonObject {
  const bank: JsonObject = isObject(data) ? data : {};
  const { routing_number: routing, account_number: account } = bank;
  return {
    ...(typeof routing === 'string' && { routing_number: routing }),
    ...(typeof account === 'string' && { account_number_last4: account.slice(-4) }),
  };
}
