/** What can go wrong with the emulator itself; refusals of the service are HTTP answers and no errors. */
export type EmulatorErrorCode =
  | 'ERR_EMULATOR_OPTION'
  | 'ERR_EMULATOR_PRODUCTION'
  | 'ERR_EMULATOR_PORT'
  | 'ERR_EMULATOR_APPROVAL';

/** The emulator was used wrongly or could not start. The message says what was expected, what came, and what to do. */
export class EmulatorError extends Error {
  override readonly name = 'EmulatorError';
  /** Stable identifier, for code that must tell errors apart. */
  readonly code: EmulatorErrorCode;
  /** The option or argument that is wrong, where it is one. */
  readonly option: string | undefined;

  constructor(
    message: string,
    details: { readonly code: EmulatorErrorCode; readonly option?: string; readonly cause?: unknown },
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.option = details.option;
  }
}
