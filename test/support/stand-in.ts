/**
 * Returns a constant that stands for an object of the running test, and the function that says for which. Private fields and
 * getters are those of the object.
 */
export function standIn<T extends object>(name: string): readonly [T, (object: T | undefined) => void] {
  let current: T | undefined;
  const object = () => {
    if (current === undefined) throw new Error(`The test has started no ${name}`);
    return current;
  };
  const stand = new Proxy({} as T, {
    get: (_, key) => {
      const value: unknown = Reflect.get(object(), key);
      return typeof value === 'function' ? value.bind(object()) : value;
    },
    set: (_, key, value) => Reflect.set(object(), key, value),
  });
  const set = (next: T | undefined) => {
    current = next;
  };
  return [stand, set];
}
