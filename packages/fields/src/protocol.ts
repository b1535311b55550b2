/** What a page and its frames say to each other. No message to the page has a value that a customer typed. */

/** Versions of this protocol that this release knows, the best one first. */
export const versions: readonly number[] = [1];

export const kinds = [
  ...['card', 'card-number', 'card-expiry', 'card-code', 'text', 'file'],
  ...['bank-account', 'routing-number', 'account-number', 'reveal'],
] as const;
export type Kind = (typeof kinds)[number];

/** From a frame to the page, once its script runs. It has no secret, so that it may go to any origin. */
export interface Hello {
  readonly strongroom: 'hello';
  readonly versions: readonly number[];
}

/** From the page to the frame, with the port over which they speak from then on. */
export interface Connect {
  readonly strongroom: 'connect';
  readonly version: number;
  /** Chosen by the page; requests name the element by it. */
  readonly element: string;
  readonly kind: Kind | 'controller';
  readonly options: ElementOptions;
}

export interface ElementOptions {
  readonly locale?: string | undefined;
  readonly label?: string | undefined;
  readonly hideLabel?: boolean | undefined;
  readonly placeholder?: string | undefined;
  readonly required?: boolean | undefined;
  readonly disabled?: boolean | undefined;
  /** For text: `0` a digit, `a` a letter, `*` either; all others are shown as they are. */
  readonly mask?: string | undefined;
  /** For text: a regular expression for the whole value. */
  readonly pattern?: string | undefined;
  readonly inputMode?: string | undefined;
  readonly autocomplete?: string | undefined;
  /** For files: media types, as the attribute of an input lists them. */
  readonly accept?: string | undefined;
  /** For a reveal: how the value is shown. */
  readonly format?: string | undefined;
  /** By the name of the property without its prefix. */
  readonly theme?: Readonly<Record<string, string>> | undefined;
  readonly colorScheme?: string | undefined;
  readonly direction?: string | undefined;
}

/** Of those the ones with a text; HTML has them in lower case. */
export const textAttributes = [
  ...(['locale', 'label', 'placeholder', 'mask', 'pattern', 'inputMode'] as const),
  ...(['autocomplete', 'accept', 'format'] as const),
] satisfies readonly (keyof ElementOptions)[];

/** The state of an element, without its value. */
export interface State {
  readonly empty: boolean;
  readonly complete: boolean;
  readonly valid: boolean;
  readonly brand?: string | undefined;
  /** The networks among which the customer may choose. */
  readonly brands?: readonly string[] | undefined;
  readonly selectedBrand?: string | undefined;
  /** Of a complete card or account number. */
  readonly lastFour?: string | undefined;
  readonly error?: { readonly code: string; readonly message: string } | undefined;
}

export type FromFrame =
  | { readonly type: 'ready'; readonly state: State }
  | { readonly type: 'change'; readonly state: State }
  | { readonly type: 'focus' | 'blur' | 'enter' }
  | { readonly type: 'height'; readonly pixels: number }
  | { readonly type: 'title'; readonly title: string }
  | { readonly type: 'reply'; readonly call: number; readonly result: unknown }
  | { readonly type: 'refusal'; readonly call: number; readonly problem: Problem };

export interface Problem {
  readonly code: string;
  /** For the developer of the page. */
  readonly message: string;
  readonly status?: number | undefined;
  /** The problem document of the vault, without values. */
  readonly document?: unknown;
  /** For the customer; one that the page writes itself lacks it. */
  readonly customerMessage?: string | undefined;
}

/** The elements directly before and after one in the order of Tab. */
export interface Neighbors {
  readonly previous?: string | undefined;
  readonly next?: string | undefined;
}

export type ToFrame =
  | { readonly type: 'focus' | 'clear' }
  | ({ readonly type: 'neighbors' } & Neighbors)
  | { readonly type: 'update'; readonly options: ElementOptions }
  | { readonly type: 'call'; readonly call: number; readonly request: FrameRequest };

/** Where the value of an element goes in a body: keys and indexes from its root. */
export interface ValuePlace {
  readonly path: readonly (string | number)[];
  readonly element: string;
  readonly part: string | undefined;
}

export interface BodyRequest {
  /** JSON with null at each of the places. */
  readonly body: unknown;
  readonly places: readonly ValuePlace[];
}

export interface CallOptions {
  readonly idempotencyKey?: string | undefined;
}

export type FrameRequest =
  | (BodyRequest &
      CallOptions & { readonly operation: 'tokens.create' | 'tokenIntents.create' | 'tokenize' })
  | (BodyRequest & CallOptions & { readonly operation: 'tokens.update'; readonly token: string })
  | (BodyRequest & ProxyTarget & { readonly operation: 'proxy' })
  | { readonly operation: 'sessions.create' | 'reveal.hide' }
  | { readonly operation: 'session'; readonly key: string | undefined }
  | {
      readonly operation: 'reveal.show';
      readonly token: string;
      readonly path: string | undefined;
    };

export interface ProxyTarget {
  /** The key of the proxy. */
  readonly proxy: string;
  readonly path?: string | undefined;
  readonly method?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}
