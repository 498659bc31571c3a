/** Returns a constant that stands for an object of the running test, and the function that sets which. */
export function standIn<T extends object>(name: string): readonly [stand: T, set: (object: T | undefined) => void] {
  let current: T | undefined;
  const get = (_: T, key: string | symbol): unknown => {
    if (current === undefined) throw new Error(`The test has started no ${name}`);
    const value: unknown = Reflect.get(current, key);
    // Called on the object itself, it can use private fields.
    return typeof value === 'function' ? value.bind(current) : value;
  };
  const set = (_: T, key: string | symbol, value: unknown) => Reflect.set(Object(current), key, value);
  const setCurrent = (object: T | undefined) => {
    current = object;
  };
  return [new Proxy({} as T, { get, set }), setCurrent];
}
