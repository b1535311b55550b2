/** People, who use the console. */
import type { RequestOptions } from './connection.ts';
import type { List } from './list.ts';
import { Resource } from './resource.ts';
import type { ConsoleSession, Person, PersonRequest, SignInLink, SignInMethod } from './wire.ts';

/**
 * People, as `vault.people`. It takes a management key.
 *
 * @example
 * ```ts
 * const { id: application } = await admin.applications.create({
 *   name: 'Support',
 *   type: 'private',
 *   permissions: ['token:read'],
 *   create_key: false,
 * });
 * const ada = await admin.people.create({ name: 'Ada Lovelace', applications: [application] });
 * ```
 */
export class People extends Resource {
  /**
   * Adds a person, who may act as the given applications.
   *
   * @example
   * ```ts
   * const { id: application } = await admin.applications.current();
   * await admin.people.create({ name: 'Grace Hopper', applications: [application] });
   * ```
   */
  create(request: PersonRequest, options?: RequestOptions): Promise<Person> {
    return this.call('createPerson', { body: request }, options);
  }

  /**
   * A person.
   *
   * @example
   * ```ts
   * const [someone] = await admin.people.list().toArray(1);
   * if (someone) console.log((await admin.people.get(someone.id)).name);
   * ```
   */
  get(id: string, options?: RequestOptions): Promise<Person> {
    return this.call('getPerson', { params: { id } }, options);
  }

  /**
   * Replaces the name and the applications. An application that is left out is taken away at once.
   *
   * @example
   * ```ts
   * const [someone] = await admin.people.list().toArray(1);
   * if (someone) await admin.people.update(someone.id, { ...someone, name: 'Ada King' });
   * ```
   */
  update(
    id: string,
    { name, applications }: PersonRequest,
    options?: RequestOptions,
  ): Promise<Person> {
    return this.call('updatePerson', { params: { id }, body: { name, applications } }, options);
  }

  /**
   * Removes a person, and ends all sessions of the person.
   *
   * @example
   * ```ts
   * const { id: application } = await admin.applications.current();
   * const { id } = await admin.people.create({ name: 'A guest', applications: [application] });
   * await admin.people.delete(id);
   * ```
   */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('deletePerson', { params: { id } }, options);
  }

  /**
   * People, newest first.
   *
   * @example
   * ```ts
   * for await (const person of admin.people.list()) console.log(person.name);
   * ```
   */
  list(options?: RequestOptions): List<Person> {
    return this.pagesOf('listPeople', {}, options);
  }

  /**
   * A link that lets the person in once, within ten minutes: the address of the console, `#`, and the `code`.
   *
   * @example
   * ```ts
   * const [someone] = await admin.people.list().toArray(1);
   * if (someone) {
   *   const { code } = await admin.people.createLink(someone.id);
   *   console.log(`${url}/console#${code}`);
   * }
   * ```
   */
  createLink(id: string, options?: RequestOptions): Promise<SignInLink> {
    return this.call('createSignInLink', { params: { id } }, options);
  }

  /**
   * The sessions of a person in the console, newest first.
   *
   * @example
   * ```ts
   * const [someone] = await admin.people.list().toArray(1);
   * if (someone) console.log(await admin.people.sessions(someone.id));
   * ```
   */
  sessions(id: string, options?: RequestOptions): Promise<ConsoleSession[]> {
    return this.call('listConsoleSessions', { params: { id } }, options);
  }

  /**
   * Ends a session of a person in the console.
   *
   * @example
   * ```ts
   * const [someone] = await admin.people.list().toArray(1);
   * for (const { id } of someone ? await admin.people.sessions(someone.id) : []) {
   *   await admin.people.endSession(someone?.id ?? '', id);
   * }
   * ```
   */
  endSession(id: string, sessionId: string, options?: RequestOptions): Promise<void> {
    return this.call('endConsoleSession', { params: { id, sessionId } }, options);
  }

  /**
   * With what a person signs in, such as passkeys.
   *
   * @example
   * ```ts
   * const [someone] = await admin.people.list().toArray(1);
   * if (someone) console.log(await admin.people.signInMethods(someone.id));
   * ```
   */
  signInMethods(id: string, options?: RequestOptions): Promise<SignInMethod[]> {
    return this.call('listSignInMethods', { params: { id } }, options);
  }

  /**
   * Removes a passkey or another sign-in method, and ends the sessions of the person.
   *
   * @example
   * ```ts
   * const [someone] = await admin.people.list().toArray(1);
   * for (const { id } of someone ? await admin.people.signInMethods(someone.id) : []) {
   *   await admin.people.removeSignInMethod(someone?.id ?? '', id);
   * }
   * ```
   */
  removeSignInMethod(id: string, methodId: string, options?: RequestOptions): Promise<void> {
    return this.call('deleteSignInMethod', { params: { id, methodId } }, options);
  }
}
