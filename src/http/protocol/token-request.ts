/** Reading requests about tokens where they are not the body itself but a part of it, or come from code. */
import type { TokenPatch, TokenRequest } from '../../values/contents.ts';
import { tokenPatch, tokenRequest } from '../schemas/token.ts';
import { compileValidator } from './validation.ts';

const validate = compileValidator(tokenRequest, 'body');

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function readTokenRequest(json: unknown): TokenRequest {
  const validated = validate(json);
  if ('error' in validated) throw validated.error;
  return validated.value as TokenRequest;
}

const validatePatch = compileValidator(tokenPatch, 'body');

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function readTokenPatch(json: unknown): TokenPatch {
  const validated = validatePatch(json);
  if ('error' in validated) throw validated.error;
  return validated.value as TokenPatch;
}
