/** The error for what a vault responds. */
import { visible } from './visible.ts';

/** The vault's refusal of a request, or the error for an incomplete response. */
export class ResponseError extends Error {
  override readonly name = 'ResponseError';
  /** Of a refusal. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    // Parts of it come from whatever responded.
    super(visible(message));
    this.status = status;
  }
}
