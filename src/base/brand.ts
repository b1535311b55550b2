/** Branded types: a value that was checked carries the proof in its type. */

declare const brand: unique symbol;

/** `T` that passed the check named `Name`; made only by the `parse…` function next to its declaration. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };
