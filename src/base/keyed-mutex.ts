/** Serializes tasks by key: the next task of a key starts when the previous one has settled. */

export type KeyedMutex = <R>(key: string, task: () => Promise<R>) => Promise<R>;

export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>();
  return (key, task) => {
    const before = last.get(key) ?? Promise.resolve();
    const result = before.then(task, task);
    last.set(key, result);
    const forget = () => {
      if (last.get(key) === result) last.delete(key);
    };
    result.then(forget, forget);
    return result;
  };
}
