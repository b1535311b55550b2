/** Branded types: a value that was checked carries the proof in its type. */

declare const brand: unique symbol;

/** `T` that passed the check called `Name`. Only the `parse…` function next to its declaration creates it. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };
