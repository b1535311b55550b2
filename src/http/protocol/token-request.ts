/** Reading a request to create a token where it is not the body itself but a part of it. */
import type { TokenRequest } from '../../values/contents.ts';
import { tokenRequest } from '../schemas/token.ts';
import { compileValidator } from './validation.ts';

const validate = compileValidator(tokenRequest, 'body');

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function readTokenRequest(json: unknown): TokenRequest {
  const validated = validate(json);
  if ('error' in validated) throw validated.error;
  return validated.value as TokenRequest;
}
