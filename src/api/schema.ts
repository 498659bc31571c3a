/**
 * A validator of the Standard Schema interface, as Zod, Valibot, ArkType and others implement it.
 *
 * @see https://standardschema.dev
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** Result of a validation. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** One reason why a value does not match a schema. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Type of the values that a schema returns. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output'];

/** Returns true for an object (or function, as ArkType has it) of the Standard Schema interface. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard: unknown = Reflect.get(value, '~standard');
  return typeof standard === 'object' && standard !== null && typeof Reflect.get(standard, 'validate') === 'function';
}
