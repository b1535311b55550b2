/** The vault's refusal of a request, or the error for an incomplete response. */
export class ResponseError extends Error {
  override readonly name = 'ResponseError';
  /** Of a refusal. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}
