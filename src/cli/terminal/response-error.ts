/** The vault's refusal of a request, or the error for an incomplete response. */
export class ResponseError extends Error {
  override readonly name = 'ResponseError';
}
